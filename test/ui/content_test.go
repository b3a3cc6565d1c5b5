// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

// Expressions for what the page shows.
const (
	// rows are the rows of the table of markers.
	rows     = `[...document.querySelectorAll('#markers tr')].map((r) => [...r.children].map((c) => c.innerText.trim()).filter(Boolean).join(' '))`
	problems = `[...document.querySelectorAll('#problems li')].map((p) => p.innerText.replace(/\s+/g, ' ').trim())`
	// groups are the groups with the numbers of their pods.
	groups = `[...document.querySelectorAll('.group')].map((g) => [g.querySelector('.group-name').innerText, g.querySelector('.kind').innerText,
		g.querySelectorAll('.cell').length].filter((v) => v !== '').join(' '))`
	// cells are the names and states of the pods for screen readers.
	cells = `[...document.querySelectorAll('.cell')].map((c) => c.getAttribute('aria-label'))`
	// shown is the number of cells.
	shown = `document.querySelectorAll('.cell').length`
)

func TestMarkers(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, rows, []string{
		"games/lobby 0 0 0 0 0 1",
		"shop/checkout 14 3 0 2 9 3",
		"games/game-server 24 4 2 0 18 0",
		"shop/database-role 3 0 0 0 3 0",
	})
	equal(p, `[...document.querySelectorAll('#markers .share')].map((s) => s.getAttribute('aria-label'))`, []string{
		"No state", "Failed: 3, No state: 2, Succeeded: 9", "Failed: 4, Unknown: 2, Succeeded: 18", "Succeeded: 3",
	})
	equal(p, "document.getElementById('source').innerText", "Cluster · jane · v0.1.0")
	equal(p, "document.title", "(3) Seamark")

	p.click(`#markers a[data-marker="shop/checkout"]`)
	equal(p, groups, []string{"checkout shop · Deployment 14"})
	equal(p, "location.search", "?marker=shop/checkout")
	p.click(`#markers a[data-marker="shop/checkout"]`)
	equal(p, shown, 41)
}

func TestPodsByWorkloadAndNode(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, groups, []string{"game-server games · StatefulSet 24", "checkout shop · Deployment 14", "database shop · StatefulSet 3"})
	equal(p, "document.querySelector('.cells').getAttribute('aria-label')", "game-server: 24 pods, Failed: 4, Unknown: 2, Succeeded: 18")
	found := value[[]string](p, cells)
	for at, want := range map[int]string{
		2: "game-server-2, Succeeded", 4: "game-server-4, Unknown", 11: "game-server-11, Failed",
		27: "checkout-7d5c9f7d4b-xe2k3, Failed, problem CannotRun", 36: "checkout-7d5c9f7d4b-xn2k3, No state, problem NoPlan", 38: "database-0, Succeeded",
	} {
		expect.Equal(t, fmt.Sprintf("cell %d", at), want, found[at])
	}
	p.choose("#group", "node")
	equal(p, groups, []string{"node-1 10", "node-2 10", "node-3 10", "node-4 9", "node-9 1", "Not bound to a node 1"})
	equal(p, "location.search", "?group=node")
	p.choose("#namespace", "shop")
	equal(p, groups, []string{"node-1 4", "node-2 4", "node-3 4", "node-4 3", "node-9 1", "Not bound to a node 1"})
	equal(p, rows, []string{"checkout 14 3 0 2 9 3", "database-role 3 0 0 0 3 0"})
}

// TestStatesHaveColorShapeAndText checks that each state has an own color, an own shape and an own text.
func TestStatesHaveColorShapeAndText(t *testing.T) {
	_, p := show(t, sample(), "")
	equal(p, shown, 41)
	for _, size := range []string{"names", "dense"} {
		p.choose("#cells", size)
		equal(p, "document.getElementById('groups').classList.contains('dense')", size == "dense")
		seen := map[string]string{}
		for class, text := range map[string]string{"failed": "Failed", "unknown": "Unknown", "none": "No state", "succeeded": "Succeeded"} {
			look := value[[]string](p, fmt.Sprintf(`(() => { const c = document.querySelector('.cell.%s');
				return [getComputedStyle(c).backgroundColor, getComputedStyle(c, '::before').maskImage, c.getAttribute('aria-label')]; })()`, class))
			if !strings.Contains(look[2], ", "+text) {
				t.Errorf("cell of state %s has the label %q", class, look[2])
			}
			for _, value := range look[:2] {
				if other, taken := seen[value]; taken || value == "none" || value == "" {
					t.Errorf("%s cells: %s and %s have the same color or shape %q", size, class, other, value)
				}
				seen[value] = class
			}
		}
		if corner := value[string](p, `getComputedStyle(document.querySelector('.cell.troubled'), '::after').clipPath`); corner == "none" {
			t.Errorf("%s cells: a problem has no corner", size)
		}
	}
}

func TestProblems(t *testing.T) {
	w := sample()
	w.markers = append(w.markers, markerOf("shop", "unused"))
	s, p := show(t, w, "")
	equal(p, problems, []string{
		"InvalidMarker games/lobby spec.probes[0].markerPolicy[0].labels: an empty key is not allowed",
		`CannotRun shop/checkout 2 pods probe cannot be run: exec: "/opt/drained": no such file or directory`,
		"NoPlan shop/checkout 1 pod node node-9 has no NodePodProbe",
		"NoPods shop/unused The marker selects no pod.",
	})
	equal(p, "document.title", "(4) Seamark")
	equal(p, rows+".find((r) => r.startsWith('shop/unused'))", "shop/unused 0 0 0 0 0 1")
	p.click("#problems li:nth-child(2) a")
	want := []string{"checkout-7d5c9f7d4b-xe2k3, Failed, problem CannotRun", "checkout-7d5c9f7d4b-xk2k0, Failed, problem CannotRun"}
	equal(p, cells, want)
	equal(p, focused, "pods")
	equal(p, "location.search", "?marker=shop/checkout&problem=CannotRun")
	equal(p, `[...document.querySelectorAll('#chosen button')].map((b) => b.ariaLabel)`, []string{
		"Remove the filter Marker: shop/checkout", "Remove the filter Problem: CannotRun", "Clear all filters",
	})
	p.click(`#chosen [data-field="reason"]`)
	equal(p, shown, 14)
	p.click(`#chosen [data-field="all"]`)
	equal(p, shown, 41)

	link := value[string](p, `document.querySelector('#problems li:nth-child(2) a').getAttribute('href')`)
	p.open(s.url(link))
	equal(p, cells, want)
	p.click("#problems li:nth-child(4) a")
	equal(p, shown, 0)
	equal(p, "location.search", "?marker=shop/unused")
	w.set(podOf("shop", "", "", "late", "node-1", probe("unused", "p", succeeded, 0, "")))
	equal(p, problems+".length", 3)
	equal(p, cells, []string{"late, Succeeded"})
}

// TestProblemsOfObjects checks that they are no links, and that they are shown as text.
func TestProblemsOfObjects(t *testing.T) {
	s := newSite(t, sample())
	s.set(web.Access{Full: true, Problems: func(context.Context) ([]model.ObjectProblem, error) {
		return []model.ObjectProblem{{Kind: "SidecarSet", Name: "log-agent", Reason: "NameConflict", Message: "spec.containers[0].name: <b>taken</b>"}}, nil
	}})
	p := newTab(t, s.host)
	p.open(s.url(""))
	equal(p, problems+"[1]", "NameConflict SidecarSet log-agent spec.containers[0].name: <b>taken</b>")
	equal(p, "document.title", "(4) Seamark")
	p.click("#problems li:nth-child(2) a")
	equal(p, "location.search", "")
}

func TestManyProblemsAndMarkers(t *testing.T) {
	w := newWorld(nil)
	for i := range 12 {
		marker := fmt.Sprintf("marker-%02d", i)
		w.markers = append(w.markers, markerOf("many", marker))
		w.set(podOf("many", "", "", "pod-"+marker, "node-1", troubled(probe(marker, "p", none, 0, ""), "NoPlan", "no plan")))
	}
	_, p := show(t, w, "")
	for list, few := range map[string]int{"problems": 5, "markers": 8} {
		count := fmt.Sprintf("document.getElementById(%q).children.length", list)
		equal(p, count, few)
		equal(p, fmt.Sprintf("document.getElementById('%s-total').innerText", list), "12")
		p.click("#" + list + "-more")
		equal(p, count, 12)
		p.click("#" + list + "-more")
		equal(p, count, few)
	}
}

func TestNoProblems(t *testing.T) {
	_, p := show(t, newWorld(nil), "")
	equal(p, "document.getElementById('problems-card').innerText.trim()", "Problems\n\nNo problems.")
	equal(p, "document.getElementById('no-pods').innerText", "No marker selects a pod.")
	equal(p, "document.getElementById('no-markers').innerText", "No markers.")
	equal(p, "document.title", "Seamark")
}

func TestFilter(t *testing.T) {
	s, p := show(t, sample(), "")
	equal(p, shown, 41)
	for _, filter := range []struct {
		text string
		want int
	}{
		{"game-server-1 games", 11}, {"TIMED OUT", 2}, {"role=primary", 1}, {"node-9", 1}, {"CannotRun", 2}, {"deployment checkout 12 orders", 1}, {"xyz", 0},
	} {
		value[chromedp.Void](p, `(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); f.focus(); })()`)
		p.press(filter.text)
		equal(p, shown, filter.want)
		equal(p, "document.getElementById('pods-total').innerText", fmt.Sprintf("%d of 41 pods", filter.want))
	}
	p.await(`document.getElementById('no-pods').checkVisibility() && document.getElementById('no-pods').innerText === 'No pod matches the filter.'`)

	p.open(s.url("?filter=games"))
	equal(p, "document.getElementById('filter').value", "games")
	p.click(`[data-state="Failed"]`)
	equal(p, shown, 4)
	p.click(`[data-state="Unknown"]`)
	equal(p, shown, 6)
	equal(p, `[...document.querySelectorAll('#states button')].map((b) => b.innerText.replace(/\s+/g, ' ') + ' ' + b.ariaPressed)`,
		[]string{"Failed 4 true", "Unknown 2 true", "No state 0 false", "Succeeded 18 false"})
	equal(p, "location.search", "?filter=games&state=Failed,Unknown")
}

// TestAddressRestoresThePage checks that a copied address and the back button show the same view.
func TestAddressRestoresThePage(t *testing.T) {
	s, p := show(t, sample(), "?namespace=games&group=node&state=Failed,Unknown&pod=games/game-server-7&cells=dense&lang=en")
	equal(p, groups, []string{"node-1 2", "node-2 1", "node-4 3"})
	equal(p, "document.getElementById('panel-title').innerText", "game-server-7")
	equal(p, "document.getElementById('groups').classList.contains('dense')", true)
	equal(p, "document.querySelector('.cell[aria-selected=true]').dataset.pod", "games/game-server-7")

	p.open(s.url(""))
	equal(p, shown, 41)
	p.click(`[data-pod="shop/database-1"]`)
	equal(p, "document.getElementById('panel-title').innerText", "database-1")
	p.click(`[data-pod="shop/database-2"]`)
	equal(p, "document.getElementById('panel-title').innerText", "database-2")
	value[chromedp.Void](p, "history.back()")
	equal(p, "document.getElementById('panel-title').innerText", "database-1")
	value[chromedp.Void](p, "history.back()")
	equal(p, "document.getElementById('panel').hidden", true)
	value[chromedp.Void](p, "history.forward()")
	equal(p, "document.getElementById('panel-title').innerText", "database-1")
}

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
		return fmt.Sprintf(
			`(() => { const c = document.querySelector('[data-pod="shop/%s"]'); return c.dataset.symbol + getComputedStyle(c).backgroundColor; })()`, pod,
		)
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
	w := newWorld(
		[]model.Marker{markerOf("shop", "db")}, roleOf("empty-0", ""), roleOf("empty-1", ""), roleOf("long-0", strings.Repeat("x", 200)),
		roleOf("long-1", strings.Repeat("x", 200)),
	)
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
	equal(
		p, legend, []string{
			"A (empty) 2", "B value-03 1", "C value-01 1", "D value-02 1", "E value-29 2", "F " + strings.Repeat("x", 60) + "… 2", "… other values 25",
		},
	)
	p.size(320, 800)
	equal(p, "document.documentElement.scrollWidth", 320)
	value[chromedp.Void](p, "document.querySelector('[data-pod=\"shop/db-3\"]').focus()")
	p.press(right)
	p.await("document.getElementById('tip').innerText.includes('role: value-04')")
}
