// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/test/expect"
)

//go:embed contrast.js
var contrast string

// accessible is a node as screen readers see it.
type accessible struct{ role, name string }

// tree returns the nodes of the accessibility tree in their order, without texts and nodes that have no meaning.
func (p *tab) tree() []accessible {
	p.Helper()
	var found []accessible
	for _, node := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		role := textOf(p, node.Role)
		if !node.Ignored && !slices.Contains([]string{"none", "generic", "StaticText", "InlineTextBox", "LabelText", "RootWebArea", "ListMarker"}, role) {
			found = append(found, accessible{role, textOf(p, node.Name)})
		}
	}
	return found
}

func textOf(p *tab, value *accessibility.Value) string {
	p.Helper()
	if value == nil || len(value.Value) == 0 {
		return ""
	}
	var text string
	expect.NoError(p, json.Unmarshal(value.Value, &text))
	return strings.TrimSpace(text)
}

// named are the roles of nodes that need a name.
var named = []string{
	"button", "link", "combobox", "listbox", "option", "searchbox", "textbox", "checkbox", "image", "table", "dialog", "heading",
	"columnheader", "rowheader", "region", "complementary", "search", "DisclosureTriangle",
}

func TestAccessibleNames(t *testing.T) {
	_, p := show(t, sample(), "?marker=shop/checkout&pod=shop/checkout-7d5c9f7d4b-xe2k3")
	equal(p, shown, 14)
	p.await("document.querySelector('.timeline .line')")
	count := map[string]int{}
	nodes := p.tree()
	for _, node := range nodes {
		count[node.role]++
		if slices.Contains(named, node.role) && node.name == "" {
			t.Errorf("a %s has no name", node.role)
		}
	}
	for role, want := range map[string]int{
		"banner": 1, "main": 1, "complementary": 1, "search": 1, "status": 1, "listbox": 1, "table": 1, "columnheader": 8, "rowheader": 4, "searchbox": 1,
	} {
		if count[role] != want {
			t.Errorf("%d nodes have the role %s, want %d", count[role], role, want)
		}
	}
	for _, want := range []accessible{
		{"heading", "checkout shop · Deployment"}, {"region", "Problems"}, {"region", "Markers"}, {"table", "Markers"}, {"region", "Pods"}, {"search", "Filter pods"},
		{"complementary", "checkout-7d5c9f7d4b-xe2k3"}, {"listbox", "checkout: 14 pods, Failed: 3, No state: 2, Succeeded: 9"},
		{"option", "checkout-7d5c9f7d4b-xe2k3, Failed, problem CannotRun"}, {"searchbox", "Filter pods"}, {"combobox", "Namespace"},
		{"combobox", "Group by"}, {"combobox", "Language"}, {"combobox", "Range"}, {"button", "Keys"}, {"button", "Close the panel"},
		{"button", "Remove the filter Marker: shop/checkout"}, {"group", "States"}, {"image", "Failed: 3, No state: 2, Succeeded: 9"},
	} {
		if !slices.Contains(nodes, want) {
			t.Errorf("no %s has the name %q", want.role, want.name)
		}
	}
	equal(p, `(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size; })()`, 0)
	equal(p, `[...document.querySelectorAll('[aria-labelledby]')].filter((e) => !document.getElementById(e.getAttribute('aria-labelledby'))).length`, 0)

	p.press("?")
	equal(p, "document.getElementById('help').open", true)
	// The rest of the page is inert while the dialog is open.
	dialog := slices.DeleteFunc(p.tree(), func(a accessible) bool {
		return !slices.Contains(named, a.role) && a.role != "banner" && a.role != "main"
	})
	want := []accessible{{"dialog", "Keys"}, {"heading", "Keys"}, {"button", "Close"}, {"checkbox", "Use the keys / and ?"}}
	if diff := cmp.Diff(
		want, dialog, cmp.AllowUnexported(accessible{}), cmpopts.SortSlices(func(a, b accessible) bool { return a.role < b.role }),
	); diff != "" {
		t.Errorf("dialog (-want +got):\n%s", diff)
	}
}

// TestHeadings checks that no level of headings is left out.
func TestHeadings(t *testing.T) {
	_, p := show(t, sample(), "?pod=shop/database-0")
	equal(p, shown, 41)
	before := 0
	for _, heading := range value[[]string](p, `[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((h) => h.tagName + ' ' + h.textContent)`) {
		level := int(heading[1] - '0')
		if level > before+1 {
			t.Errorf("heading %q follows one of level %d", heading, before)
		}
		before = level
	}
}

func TestContrast(t *testing.T) {
	w := withSets()
	s, p := showSets(t, w, "")
	states := []struct {
		name    string
		prepare func()
	}{
		{"names", func() { p.open(s.url("?")); equal(p, shown, 41) }},
		{"panel and filters", func() {
			p.open(s.url("?marker=games/game-server&state=Failed&filter=players&pod=games/game-server-7"))
			equal(p, shown, 4)
			p.await("document.querySelector('.timeline .line')")
			p.click(".timeline summary")
		}},
		{"problem in the panel", func() { p.open(s.url("?pod=shop/checkout-7d5c9f7d4b-xe2k3")); equal(p, shown, 41) }},
		{"set in the panel", func() {
			p.open(s.url("?set=StatefulSet/games/game-server"))
			p.await("document.querySelector('.panel .events')")
		}},
		{"dense", func() { p.open(s.url("?cells=dense&group=node")); equal(p, shown, 41) }},
		{"tip and skip link", func() {
			p.open(s.url(""))
			equal(p, shown, 41)
			value[chromedp.Void](p, `document.querySelector('[data-pod="games/game-server-4"]').focus()`)
			p.press(right)
			p.await("!document.getElementById('tip').hidden")
		}},
		{"help", func() { p.open(s.url("")); p.press("?"); p.await("document.getElementById('help').open") }},
		{"notices", func() {
			s.set(web.Access{})
			p.open(s.url(""))
			equal(p, shown, 41)
			w.refuse(&refused)
			value[chromedp.Void](p, connect)
			equal(p, connection, "refused")
			p.await("document.getElementById('notice').checkVisibility() && document.getElementById('partial').checkVisibility()")
			s.set(web.Access{Full: true, Set: details(w)})
			w.refuse(nil)
		}},
	}
	for _, theme := range []string{"light", "dark"} {
		p.prefer(theme)
		for _, state := range states {
			state.prepare()
			result := value[struct {
				Checked int
				Found   []string
			}](p, contrast)
			if result.Checked < 20 {
				t.Errorf("%s, %s: only %d colors were checked", theme, state.name, result.Checked)
			}
			for _, found := range result.Found {
				t.Errorf("%s, %s: %s", theme, state.name, found)
			}
		}
	}
}

// TestWidths checks that the page fits into narrow windows: nothing but tables scrolls sideways.
func TestWidths(t *testing.T) {
	s, p := showSets(t, withSets(), "?pod=games/game-server-7")
	equal(p, shown, 41)
	for _, width := range []int64{320, 400, 768, 1000, 1024, 1600, 1920} {
		p.size(width, 800)
		for _, query := range []string{"", "?pod=games/game-server-7", "?set=StatefulSet/games/game-server", "?cells=dense&lang=zh"} {
			p.open(s.url(query))
			equal(p, shown, 41)
			if over := value[[]string](p, `[...document.body.querySelectorAll('*')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .hidden, .skip') &&
				e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className)`); len(over) > 0 {
				t.Errorf("width %d, %q: beyond the edge: %s", width, query, strings.Join(over[:min(5, len(over))], ", "))
			}
			const sideways = "[document.getElementById('sets-scroll')].map((s) => s.scrollWidth - s.clientWidth)[0]"
			if width >= 400 && value[int64](p, sideways) > 0 {
				t.Errorf("width %d, %q: the table of sets scrolls sideways", width, query)
			}
			if scroll := value[int64](p, "document.documentElement.scrollWidth"); scroll > width {
				t.Errorf("width %d, %q: the page is %d wide", width, query, scroll)
			}
		}
	}
}

func TestTabOrder(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	want := []string{
		"Skip to the pods", "namespace", "language", "theme", "help-button",
		"InvalidMarker games/lobby spec.probes[0].markerPolicy[0].labels: an empty key is not allowed",
		`CannotRun shop/checkout 2 pods probe cannot be run: exec: "/opt/drained": no such file or directory`,
		"NoPlan shop/checkout 1 pod node node-9 has no NodePodProbe",
		"games/lobby", "shop/checkout", "games/game-server", "shop/database-role",
		"filter", "Failed 7", "Unknown 2", "No state 2", "Succeeded 30", "color", "group", "cells",
		"games/game-server-0", "shop/checkout-7d5c9f7d4b-xb2k0", "shop/database-0",
	}
	var got []string
	for range want {
		p.press(tabKey)
		got = append(got, value[string](p, focused))
		if outline := value[string](p, "getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
			t.Errorf("the focus on %s is not visible: its outline is %s", got[len(got)-1], outline)
		}
	}
	expect.Equal(t, "order of Tab", want, got)
	p.press(tabKey, kb.ModifierShift)
	equal(p, focused, "shop/checkout-7d5c9f7d4b-xb2k0")
}

func TestSkipLink(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	p.press(tabKey)
	p.press(enter)
	equal(p, focused, "pods")
	p.press(tabKey)
	equal(p, focused, "filter")
}

func TestArrows(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	// The window has five columns.
	equal(p, "getComputedStyle(document.querySelector('.cells')).gridTemplateColumns.split(' ').length", 5)
	value[chromedp.Void](p, `document.querySelector('[data-pod="games/game-server-0"]').focus()`)
	for _, step := range []struct{ key, want string }{
		{right, "games/game-server-1"}, {down, "games/game-server-6"}, {left, "games/game-server-5"}, {up, "games/game-server-0"},
		{end, "games/game-server-23"}, {home, "games/game-server-0"}, {left, "games/game-server-0"},
		{pageDown, "shop/checkout-7d5c9f7d4b-xb2k0"}, {pageUp, "games/game-server-0"}, {end, "games/game-server-23"},
		{down, "shop/checkout-7d5c9f7d4b-xb2k0"}, {left, "games/game-server-23"}, {right, "shop/checkout-7d5c9f7d4b-xb2k0"},
		{end, "shop/checkout-7d5c9f7d4b-xo2k4"}, {pageDown, "shop/database-0"}, {end, "shop/database-2"}, {right, "shop/database-2"},
	} {
		p.press(step.key)
		if got := value[string](p, focused); got != step.want {
			t.Fatalf("key %q moves the focus to %s, want %s", step.key, got, step.want)
		}
	}
	// One cell of each group is in the order of Tab: the last one that had the focus.
	equal(p, `[...document.querySelectorAll('.cell[tabindex="0"]')].map((c) => c.dataset.pod)`,
		[]string{"games/game-server-23", "shop/checkout-7d5c9f7d4b-xo2k4", "shop/database-2"})
	// The tip shows what the cell has no room for.
	equal(p, "document.getElementById('tip').textContent", "database-2database-role#role: Succeeded – secondary")
}

func TestEnterAndEscape(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	value[chromedp.Void](p, `document.querySelector('[data-pod="games/game-server-0"]').focus()`)
	for _, key := range []string{enter, " "} {
		p.press(right)
		cell := value[string](p, focused)
		p.press(key)
		equal(p, focused, "panel-title")
		p.press(escape)
		equal(p, "document.getElementById('panel').hidden", true)
		equal(p, focused, cell)
	}
	// Escape hides the tip before anything else.
	p.press(right)
	equal(p, "document.getElementById('tip').hidden", false)
	p.press(escape)
	equal(p, "document.getElementById('tip').hidden", true)
}

func TestSingleKeys(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	p.press("/")
	equal(p, focused, "filter")
	p.press("o")
	p.press("/")
	p.press("?")
	equal(p, "document.getElementById('filter').value", "o/?")
	equal(p, "document.getElementById('help').open", false)
	p.press(escape)
	equal(p, "document.getElementById('filter').value", "")
	equal(p, shown, 41)

	value[chromedp.Void](p, "document.activeElement.blur()")
	p.press("?")
	equal(p, "document.getElementById('help').open", true)
	p.press("/")
	equal(p, "document.getElementById('help').contains(document.activeElement)", true)
	p.press(escape)
	equal(p, "document.getElementById('help').open", false)

	// The keys can be turned off, which the browser remembers.
	p.click("#help-button")
	equal(p, "document.getElementById('help').open", true)
	p.click("#single-keys")
	p.press(escape)
	equal(p, "document.getElementById('help').open", false)
	equal(p, focused, "help-button")
	p.do(chromedp.Reload())
	p.awaitLive()
	equal(p, shown, 41)
	value[chromedp.Void](p, "document.getElementById('pods').focus()")
	p.press("/")
	equal(p, focused, "pods")
	p.press("?")
	equal(p, "document.getElementById('help').open", false)
}

// TestFocusSurvivesChanges checks that the focus stays where it is while the page changes, and moves to the
// next pod if its pod is gone.
func TestFocusSurvivesChanges(t *testing.T) {
	w := sample()
	_, p := show(t, w, "")
	equal(p, shown, 41)
	value[chromedp.Void](p, `document.querySelector('[data-pod="games/game-server-7"]').focus()`)
	w.set(podOf("games", "StatefulSet", "game-server", "game-server-7", "node-4", probe("game-server", "idle", succeeded, 0, "0 players")),
		podOf("games", "StatefulSet", "game-server", "game-server-05", "node-4", probe("game-server", "idle", succeeded, 0, "0 players")))
	w.remove("games/game-server-6")
	p.await(`document.querySelector('[data-pod="games/game-server-7"]').classList.contains('succeeded')`)
	equal(p, shown, 41)
	equal(p, focused, "games/game-server-7")
	w.remove("games/game-server-7")
	equal(p, shown, 40)
	equal(p, focused, "games/game-server-8")
	p.press(right)
	equal(p, focused, "games/game-server-9")

	// The last pod of a group.
	value[chromedp.Void](p, `document.querySelector('[data-pod="shop/database-2"]').focus()`)
	w.remove("shop/database-2")
	equal(p, focused, "shop/database-1")
	w.remove("shop/database-0", "shop/database-1")
	equal(p, focused, "pods")
}
