// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Expressions for the colors of the cells.
const (
	// legend are the symbols, values and numbers in the legend, or nothing if it is hidden.
	legend = `[...document.querySelectorAll('#legend:not([hidden]) li')].map((l) => l.innerText.replace(/\s+/g, ' ').trim())`
	// choices are what the cells can be colored by.
	choices = `[...document.querySelectorAll('#color option')].map((o) => o.text)`
	// tallies are the numbers at the titles of the groups.
	tallies = `[...document.querySelectorAll('.tally')].map((t) => t.innerText.replace(/\s+/g, ' ').trim())`
)

// roleOf returns a pod whose label has a value.
func roleOf(name, role string) model.Pod {
	return podOf("shop", "StatefulSet", "db", name, "node-1", marked(probe("db", "role", succeeded, 0, "fine"), mark.KindLabel, "role", role))
}

func TestColorByMark(t *testing.T) {
	w := sample()
	s, p := show(t, w, "?namespace=shop")
	equal(p, shown, 17)
	equal(p, legend, []string{})
	equal(p, choices, []string{"State of the pod", "checkout#drained", "database-role#role", "example.com/Drained (condition)", "role (label)"})
	p.choose("#color", "label:role")
	equal(p, "location.search", "?namespace=shop&color=label:role")
	equal(p, legend, []string{"A primary 1", "B secondary 2", "– none 14"})
	equal(p, tallies, []string{"– 14", "A 1 B 2"})
	equal(p, "document.querySelector('.group:last-child .cells').ariaLabel", "database: 3 pods, primary: 1, secondary: 2")
	found := value[[]string](p, cells)
	if want := "database-0, role: primary"; found[14] != want {
		t.Errorf("cell is %q, want %q", found[14], want)
	}
	if want := "checkout-7d5c9f7d4b-xe2k3, role: none, problem CannotRun"; found[3] != want {
		t.Errorf("cell is %q, want %q", found[3], want)
	}
	equal(p, "document.querySelectorAll('.cell.changed').length", 0)
	equal(p, "document.querySelectorAll('.cell.troubled').length", 3)
	equal(p, "[...document.querySelectorAll('[data-pod^=\"shop/database\"] .note')].map((n) => n.innerText)", []string{"primary", "secondary", "secondary"})

	// A fail-over: the colors of the values stay.
	look := func(pod string) string {
		return fmt.Sprintf(`(() => { const c = document.querySelector('[data-pod="shop/%s"]'); return c.dataset.symbol + getComputedStyle(c).backgroundColor; })()`, pod)
	}
	primary, secondary := value[string](p, look("database-0")), value[string](p, look("database-1"))
	role := func(pod, role string) model.Pod {
		return podOf("shop", "StatefulSet", "database", pod, "node-1", marked(probe("database-role", "role", succeeded, 0, role), mark.KindLabel, "role", role))
	}
	w.set(role("database-0", "secondary"), role("database-1", "primary"))
	equal(p, look("database-1"), primary)
	equal(p, look("database-0"), secondary)
	w.set(role("database-2", "candidate"))
	equal(p, legend, []string{"A primary 1", "B secondary 1", "C candidate 1", "– none 14"})

	p.open(s.url("?namespace=shop&color=label:role&cells=dense"))
	equal(p, legend, []string{"A candidate 1", "B primary 1", "C secondary 1", "– none 14"})
	equal(p, `getComputedStyle(document.querySelector('[data-pod="shop/database-1"]'), '::before').content`, `"B"`)
	p.choose("#color", "")
	equal(p, legend, []string{})
	equal(p, "location.search", "?namespace=shop&cells=dense")
	p.open(s.url("?color=other"))
	equal(p, "document.getElementById('color').value", "")
	p.open(s.url("?color=label:gone&namespace=shop"))
	equal(p, legend, []string{"– none 17"})
	equal(p, "document.getElementById('color').value", "label:gone")
}

func TestColorByProbe(t *testing.T) {
	w := newWorld([]model.Marker{markerOf("shop", "game")},
		podOf("shop", "", "", "both", "node-1", probe("game", "busy", succeeded, 0, "3 players"), probe("game", "healthy", failed, 0, "disk is full")),
		podOf("shop", "", "", "one", "node-1", probe("game", "healthy", succeeded, 0, "")))
	_, p := show(t, w, "?color=probe:game%23busy")
	equal(p, legend, []string{"Succeeded 1", "– none 1"})
	equal(p, cells, []string{"both, game#busy: Succeeded", "one, game#busy: none"})
	equal(p, "document.querySelector('.cell .note').innerText", "3 players")
	equal(p, "document.querySelector('.cell').className", "cell succeeded")
	equal(p, "location.search", "?color=probe:game%23busy")
	p.choose("#color", "probe:game#healthy")
	equal(p, legend, []string{"Failed 1", "Succeeded 1"})
}

// TestManyValues checks that the legend is bounded, and that what is in it can be read in both themes.
func TestManyValues(t *testing.T) {
	w := newWorld([]model.Marker{markerOf("shop", "db")}, roleOf("empty-0", ""), roleOf("empty-1", ""), roleOf("long-0", strings.Repeat("x", 200)), roleOf("long-1", strings.Repeat("x", 200)))
	for i := range 30 {
		w.set(roleOf(fmt.Sprintf("db-%d", i), fmt.Sprintf("value-%02d", i)))
	}
	w.set(roleOf("db-30", "value-29"))
	_, p := show(t, w, "?color=label:role")
	equal(p, shown, 35)
	want := []string{"A (empty) 2", "B value-00 1", "C value-01 1", "D value-02 1", "E value-29 2", "F " + strings.Repeat("x", 60) + "… 2", "… other values 26"}
	equal(p, legend, want)
	for _, theme := range []string{"light", "dark"} {
		p.prefer(theme)
		result := value[struct {
			Checked int
			Found   []string
		}](p, contrast)
		for _, found := range result.Found {
			t.Errorf("%s: %s", theme, found)
		}
	}
	equal(p, `new Set([...document.querySelectorAll('#legend .swatch')].map((s) => getComputedStyle(s).backgroundColor)).size`, len(want))
	equal(p, `new Set([...document.querySelectorAll('.cell')].map((c) => getComputedStyle(c).backgroundColor)).size`, len(want))

	// A value without pods leaves its color to another one; the others keep theirs.
	w.remove("shop/db-0")
	equal(p, legend, []string{"A (empty) 2", "B value-03 1", "C value-01 1", "D value-02 1", "E value-29 2", "F " + strings.Repeat("x", 60) + "… 2", "… other values 25"})
	p.size(320, 800)
	equal(p, "document.documentElement.scrollWidth", 320)
	value[chromedp.Void](p, "document.querySelector('[data-pod=\"shop/db-3\"]').focus()")
	p.press(right)
	p.await("document.getElementById('tip').innerText.includes('role: value-04')")
}
