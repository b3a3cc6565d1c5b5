// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// background makes the page believe that it is in the background, or not: a browser without windows has no background.
func (p *tab) background(hidden bool) {
	p.Helper()
	value[chromedp.Void](p, fmt.Sprintf(`(() => {
		Object.defineProperty(document, 'hidden', { value: %t, configurable: true });
		document.dispatchEvent(new Event('visibilitychange')); })()`, hidden))
}

// TestManyTabs opens more tabs than a browser has connections for a server. The tabs in the foreground are connected.
func TestManyTabs(t *testing.T) {
	const connected, count = 4, 8
	w := sample()
	s, p := show(t, w, "")
	tabs := []*tab{p}
	for range count - 1 {
		another := p.another()
		another.do(chromedp.Navigate(s.url("")))
		equal(another, "document.getElementById('source').innerText", "Cluster · jane · v0.1.0")
		tabs = append(tabs, another)
	}
	const full = "Too many tabs and windows show pages of this server. Close one, or move one to the background, and this page continues."
	for i, each := range tabs {
		if i < connected {
			equal(each, connection, "live")
			continue
		}
		equal(each, connection, "queued")
		equal(each, notice, full)
		equal(each, "document.getElementById('namespace').selectedOptions[0]?.text", "All namespaces")
	}
	for _, each := range tabs[:count-1] {
		each.background(true)
	}
	last := tabs[count-1]
	equal(last, connection, "live")
	equal(last, notice, "")
	equal(last, shown, 41)

	// A tab in the background gives up its connection only if another one needs it.
	for _, each := range tabs[:count-1] {
		each.background(false)
		each.awaitLive()
		each.background(true)
	}
	w.remove("shop/database-0")
	for _, i := range []int{count - 2, count - 1} {
		equal(tabs[i], connection, "live")
		equal(tabs[i], shown, 40)
	}
	equal(p, connection, "paused")
	p.background(false)
	p.awaitLive()
	equal(p, shown, 40)
}
