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
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seamark-dev/seamark/internal/web"
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
	if err := json.Unmarshal(value.Value, &text); err != nil {
		p.Fatal(err)
	}
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
	if diff := cmp.Diff(want, dialog, cmp.AllowUnexported(accessible{}), cmpopts.SortSlices(func(a, b accessible) bool { return a.role < b.role })); diff != "" {
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
	w := sample()
	s, p := show(t, w, "")
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
			s.set(web.Access{Full: true})
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
	s, p := show(t, sample(), "?pod=games/game-server-7")
	equal(p, shown, 41)
	for _, width := range []int64{320, 400, 768, 1024, 1920} {
		p.size(width, 800)
		for _, query := range []string{"", "?pod=games/game-server-7", "?cells=dense&lang=zh"} {
			p.open(s.url(query))
			equal(p, shown, 41)
			if over := value[[]string](p, `[...document.body.querySelectorAll('*')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .hidden, .skip') &&
				e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className)`); len(over) > 0 {
				t.Errorf("width %d, %q: beyond the edge: %s", width, query, strings.Join(over[:min(5, len(over))], ", "))
			}
			if scroll := value[int64](p, "document.documentElement.scrollWidth"); scroll > width {
				t.Errorf("width %d, %q: the page is %d wide", width, query, scroll)
			}
		}
	}
}
