// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestLanguages(t *testing.T) {
	s, p := show(t, sample(), "?pod=shop/checkout-7d5c9f7d4b-xe2k3")
	equal(p, shown, 41)
	p.choose("#language", "zh")
	equal(p, "document.documentElement.lang", "zh-CN")
	equal(p, "[...document.querySelectorAll('h2')].map((h) => h.textContent)", []string{"问题", "Marker", "Pod", "checkout-7d5c9f7d4b-xe2k3", "按键"})
	equal(p, "document.querySelector('[data-pod=\"shop/database-0\"]').ariaLabel", "database-0，成功")
	p.click("#help-button")
	p.await("document.querySelector('.timeline .line')")
	equal(p, "document.getElementById('live').innerText", "41 个 Pod：失败：7，未知：2，无状态：2，成功：30。3 个问题。")

	// What is left in English are names and messages of the cluster, and terms of Kubernetes.
	english := regexp.MustCompile(`[A-Za-z]{3,}`)
	cluster := regexp.MustCompile(`shop|games|lobby|checkout|drained|node-\d|database|game-server|idle|role|main|jane|Seamark|seamark explain|StatefulSet|` +
		`Deployment|Running|CannotRun|NoPlan|NodePodProbe|InvalidMarker|PodNotBound|probe cannot be run.*|node node-9 has.*|spec\.probes.*|no open orders|` +
		`example.com/Drained(=True)?|controller.kubernetes.io/pod-deletion-cost|\d players|timed out after 1s|primary|secondary|12 orders are open|English|[Mm]arker|agent|Pod|Home|End|Page (Up|Down)|Enter|Esc|Tab|Shift`)
	texts := value[[]string](p, `(() => {
		const found = [document.title];
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('noscript')) found.push(walker.currentNode.data);
		for (const e of document.querySelectorAll('*')) for (const a of ['aria-label', 'title', 'placeholder']) if (e.hasAttribute(a)) found.push(e.getAttribute(a));
		return found; })()`)
	for _, text := range slices.Compact(slices.Sorted(slices.Values(texts))) {
		if left := cluster.ReplaceAllString(text, ""); english.MatchString(left) {
			t.Errorf("English text on the Chinese page: %q", text)
		}
	}

	// The browser remembers the language, and an address may name another one.
	p.press(escape)
	p.open(s.url(""))
	equal(p, "document.documentElement.lang", "zh-CN")
	equal(p, "document.getElementById('language').value", "zh")
	p.open(s.url("?lang=en"))
	equal(p, "document.documentElement.lang", "en")
}

// TestLanguageOfTheBrowser checks that the page starts in the language of the browser.
func TestLanguageOfTheBrowser(t *testing.T) {
	s := newSite(t, sample())
	for accepted, want := range map[string]string{"zh-TW,en": "zh-CN", "de,zh": "zh-CN", "de": "en"} {
		p := newTab(t, s.host)
		agent := value[string](p, "navigator.userAgent")
		call(p, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: accepted})
		p.open(s.url(""))
		equal(p, "document.documentElement.lang", want)
	}
}

func TestThemes(t *testing.T) {
	_, p := show(t, sample(), "")
	const background = "getComputedStyle(document.body).backgroundColor"
	light, dark := value[string](p, background), "rgb(18, 22, 27)"
	if light == dark {
		t.Fatalf("the light theme has the background %s", light)
	}
	p.prefer("dark")
	equal(p, background, dark)
	p.choose("#theme", "light")
	equal(p, background, light)
	p.do(chromedp.Reload())
	p.awaitLive()
	equal(p, background, light)
	equal(p, "document.getElementById('theme').value", "light")
	p.choose("#theme", "system")
	equal(p, background, dark)
}
