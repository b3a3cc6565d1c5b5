// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order of Tab (-want +got):\n%s", diff)
	}
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
