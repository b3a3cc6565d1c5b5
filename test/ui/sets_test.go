// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

func setOf(namespace, kind, name, phase, reason, message string) model.Set {
	set := model.Set{
		SetID: model.SetID{Namespace: namespace, Kind: kind, Name: name}, Revision: name + "-6c9d5b8f7", Desired: 24, Updated: 20, Available: 23,
		Phase: phase, Reason: reason, Message: message, Problem: phase == "Stalled", Complete: phase == "Complete",
	}
	if set.Complete {
		set.Desired, set.Updated, set.Available = 3, 3, 3
	}
	return set
}

// withSets is the sample with sets, two of which have pods of the sample.
func withSets() *world {
	w := sample()
	w.sets = &model.Sets{Sets: []model.Set{
		setOf("games", "StatefulSet", "game-server", "Progressing", "Updating", "20 of 24 pods are updated"),
		setOf("shop", "StatefulSet", "database", "Complete", "Complete", "3 of 3 pods are updated and available"),
		setOf("shop", "CloneSet", "cache", "Stalled", "ProgressDeadlineExceeded", "no progress for 600s"),
	}}
	w.others = []model.Event{
		{Type: "Warning", Reason: "BackOff", Message: "Back-off restarting failed container", Count: 7, Last: time.Now().Add(-150 * time.Minute)},
		{Type: "Normal", Reason: "Pulled", Message: "Container image is present", Count: 1, Last: time.Now().Add(-36 * time.Hour)},
	}
	return w
}

// details are what is known of a set: 30 pods that are not available, and two events.
func details(w *world) func(context.Context, model.SetID) (model.SetDetails, error) {
	return func(_ context.Context, set model.SetID) (model.SetDetails, error) {
		if set.Name == "cache" {
			return model.SetDetails{}, web.NoSet(set)
		}
		found := model.SetDetails{WaitCount: 30, Events: w.others}
		for i := range model.MaxWaits {
			found.Waits = append(found.Waits, model.PodWait{
				Name: fmt.Sprintf("game-server-%d", i), Problem: i == 0,
				Why: "spec.lifecycle.inPlaceUpdate holds it in the state PreparingUpdate until the label game.io/busy=true is removed",
			})
		}
		return found, nil
	}
}

// showSets opens the page of a user who may read the sets.
func showSets(t *testing.T, w *world, query string) (*site, *tab) {
	t.Helper()
	s := newSite(t, w)
	s.set(web.Access{User: "jane", Full: true, Set: details(w)})
	p := newTab(t, s.host)
	p.open(s.url(query))
	return s, p
}

// Expressions for sets.
const (
	setRows = `[...document.querySelectorAll('#sets tr')].map((r) => r.innerText.replace(/\s+/g, ' ').trim())`
	// rollouts are the links at the titles of the groups.
	rollouts = `[...document.querySelectorAll('.group h3')].map((h) => h.querySelector('.rollout').innerText.replace(/\s+/g, ' ').trim())`
	// facts are those of the object in the panel.
	facts = `[...document.querySelectorAll('.panel > .facts > div')].map((f) => f.innerText.replace(/\s+/g, ' ').trim())`
	// lists are the items of the list with the title.
	lists = `[...document.querySelectorAll('[aria-labelledby=%q] li')].map((l) => l.innerText.replace(/\s+/g, ' ').trim())`
)

func TestSets(t *testing.T) {
	w := withSets()
	s, p := showSets(t, w, "")
	equal(p, setRows, []string{
		"shop/cache CloneSet Stalled no progress for 600s cache-6c9d5b8f7 20 of 24 23 of 24",
		"games/game-server StatefulSet Progressing 20 of 24 pods are updated game-server-6c9d5b8f7 20 of 24 23 of 24",
		"shop/database StatefulSet Complete 3 of 3 pods are updated and available database-6c9d5b8f7 3 of 3 3 of 3",
	})
	equal(p, rollouts, []string{"Progressing 20 of 24 updated", "", "Complete 3 of 3 updated"})
	equal(p, problems+"[1]", "ProgressDeadlineExceeded CloneSet shop/cache no progress for 600s")
	equal(p, "document.title", "(4) Seamark")

	// The set of a group, by keyboard.
	value[chromedp.Void](p, "document.querySelector('.rollout').focus()")
	p.press(enter)
	equal(p, focused, "panel-title")
	equal(p, "location.search", "?set=StatefulSet/games/game-server")
	equal(p, facts, []string{
		"Namespace games", "Kind StatefulSet", "Rollout Progressing 20 of 24 pods are updated", "Revision game-server-6c9d5b8f7",
		"Updated 20 of 24", "Available 23 of 24",
	})
	const why = " spec.lifecycle.inPlaceUpdate holds it in the state PreparingUpdate until the label game.io/busy=true is removed"
	equal(p, fmt.Sprintf(lists+".slice(0, 2)", "waits-title"), []string{"game-server-0" + why, "game-server-1" + why})
	equal(p, "document.querySelector('[aria-labelledby=waits-title] .hint').innerText", "20 of 30")
	equal(p, fmt.Sprintf(lists, "events-title"), []string{
		"Warning BackOff 7 times 2 hours ago Back-off restarting failed container", "Pulled 1 day ago Container image is present",
	})
	p.press(escape)
	equal(p, "document.getElementById('panel').hidden", true)
	equal(p, "document.activeElement.dataset.set", "StatefulSet/games/game-server")

	// A change, and a set that is gone.
	p.open(s.url("?set=StatefulSet/games/game-server"))
	w.change(func() { w.sets.Sets[0].Updated = 21 })
	equal(p, facts+"[4]", "Updated 21 of 24")
	equal(p, rollouts+"[0]", "Progressing 21 of 24 updated")
	w.change(func() { w.sets.Sets = w.sets.Sets[1:] })
	equal(p, "document.querySelector('.panel .notice').innerText", "The set no longer exists.")
	equal(p, rollouts+"[0]", "")

	// From the set to a pod and back.
	p.open(s.url(""))
	p.click("#problems li:nth-child(2) a")
	equal(p, "document.getElementById('panel-title').innerText", "cache")
	equal(p, `document.querySelector('[aria-labelledby=waits-title] .calm').innerText`,
		`The set could not be read: "CloneSet shop/cache" does not exist, or is not of a kind that has a rollout.`)
	p.click(`[data-pod="shop/database-0"]`)
	equal(p, "location.search", "?pod=shop/database-0")
	p.click(".panel .facts a")
	equal(p, "location.search", "?set=StatefulSet/shop/database")
	value[chromedp.Void](p, "history.back()")
	equal(p, "document.getElementById('panel-title').innerText", "database-0")
}

// TestSetsOfOthers checks what users see who may not read everything, and that the list is bounded.
func TestSetsOfOthers(t *testing.T) {
	const card = "document.getElementById('sets-card')"
	w := sample()
	_, p := showSets(t, w, "")
	equal(p, shown, 41)
	equal(p, card+".hidden", true)
	w.change(func() { w.sets = &model.Sets{Note: "no permission to list clonesets.apps.kruise.io in the cluster"} })
	equal(p, card+".innerText.trim()", "Sets\n\nNot all sets are shown: no permission to list clonesets.apps.kruise.io in the cluster.")
	var many []model.Set
	for i := range model.MaxSets + 1 {
		many = append(many, setOf("shop", "CloneSet", fmt.Sprintf("web-%04d", i), "Complete", "Complete", ""))
	}
	w.change(func() { w.sets = &model.Sets{Sets: many} })
	equal(p, "document.getElementById('sets-total').innerText", "1,000 of 1,001")
	equal(p, "document.getElementById('sets').children.length", 8)
	p.click("#sets-more")
	equal(p, "document.getElementById('sets').children.length", model.MaxSets)
}

// TestEvents checks the events of a pod, and the note without the permission.
func TestEvents(t *testing.T) {
	w := withSets()
	s, p := showSets(t, w, "?pod=shop/database-0")
	equal(p, fmt.Sprintf(lists, "events-title"), []string{
		"Warning BackOff 7 times 2 hours ago Back-off restarting failed container", "Pulled 1 day ago Container image is present",
	})
	const section = "document.querySelector('[aria-labelledby=events-title]').innerText"
	w.change(func() { w.others = nil })
	p.open(s.url("?pod=shop/database-0"))
	equal(p, section, "Events\n\nNo events.")
	w.withhold(errNoEvents)
	p.open(s.url("?pod=shop/database-0"))
	equal(p, section, "Events\n\nNot all events are known: "+errNoEvents.Error()+".")
	s.stop()
	s.session.Source = model.SourceLocal
	s.start()
	p.open(s.url("?pod=shop/database-0"))
	p.await("document.querySelector('.timeline .line')")
	equal(p, "document.querySelector('[aria-labelledby=events-title]') === null", true)
}

// TestVisibleNamespaces checks that a user who may not read all namespaces sees which ones are shown.
func TestVisibleNamespaces(t *testing.T) {
	s := newSite(t, sample())
	s.set(web.Access{Full: true, Namespaces: func(context.Context) (model.Namespaces, error) {
		return model.Namespaces{Names: []string{"games", "quiet", "shop"}, Shown: []string{"games", "shop"}}, nil
	}})
	p := newTab(t, s.host)
	p.open(s.url(""))
	equal(p, "[...document.getElementById('namespace').options].map((o) => o.text)",
		[]string{"All namespaces", "games", "quiet", "shop", "Another namespace…"})
	const some = "document.getElementById('some-namespaces')"
	equal(p, some+".innerText", "You may not read all namespaces. The page shows these: games, shop.")
	p.choose("#namespace", "shop")
	equal(p, shown, 17)
	equal(p, some+".hidden", true)
	s.set(web.Access{Full: true, Namespaces: func(context.Context) (model.Namespaces, error) {
		return model.Namespaces{}, &web.Refusal{Status: http.StatusForbidden, Message: "no"}
	}})
	p.open(s.url(""))
	equal(p, shown, 41)
	equal(p, some+".hidden", true)
}

// TestChineseProblems checks that reasons are in Chinese, with the reason itself and the message of the cluster.
func TestChineseProblems(t *testing.T) {
	_, p := showSets(t, withSets(), "?lang=zh")
	equal(p, problems, []string{
		"marker 无效（InvalidMarker） games/lobby spec.probes[0].markerPolicy[0].labels: an empty key is not allowed",
		"超过进度期限（ProgressDeadlineExceeded） CloneSet shop/cache no progress for 600s",
		`探测无法执行（CannotRun） shop/checkout 2 个 Pod probe cannot be run: exec: "/opt/drained": no such file or directory`,
		"节点没有计划（NoPlan） shop/checkout 1 个 Pod node node-9 has no NodePodProbe",
	})
	equal(p, setRows+"[1]", "games/game-server StatefulSet 进行中 正在更新 Pod：20 of 24 pods are updated game-server-6c9d5b8f7 20 / 24 23 / 24")
	p.click("#problems li:nth-child(3) a")
	equal(p, "document.querySelector('#chosen [data-field=reason]').innerText.trim()", "问题：探测无法执行（CannotRun）\n×")
	equal(p, "location.search", "?marker=shop/checkout&problem=CannotRun&lang=zh")
	p.click(".cell")
	equal(p, "document.querySelector('.panel .trouble strong').innerText", "探测无法执行（CannotRun）")
}

// scrolled are the elements that scroll up and down.
const scrolled = `[...document.querySelectorAll('*')].filter((e) => e === document.documentElement ?
	e.scrollHeight > e.clientHeight && getComputedStyle(document.body).overflowY !== 'hidden' :
	e !== document.body && e.checkVisibility() && e.scrollHeight > e.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(e).overflowY))
	.map((e) => e.id || e.className || e.tagName)`

// TestOneScrollBar checks that one thing scrolls at each width, in both themes, and that the panel is seen when it opens.
func TestOneScrollBar(t *testing.T) {
	w := withSets()
	long := strings.Repeat("a long message ", 68)
	w.set(podOf("games", "StatefulSet", "game-server", "game-server-7", "node-4", probe("game-server", "idle", failed, 0, long)))
	s, p := showSets(t, w, "")
	for _, theme := range []string{"light", "dark"} {
		p.prefer(theme)
		for width, panel := range map[int64]string{400: "panel", 1000: "panel", 1600: "HTML"} {
			p.size(width, 700)
			p.open(s.url(""))
			equal(p, shown, 41)
			equal(p, scrolled, []string{"HTML"})
			for selector, loaded := range map[string]string{
				`[data-pod="games/game-server-7"]`: ".timeline .line", `#sets [data-set="StatefulSet/games/game-server"]`: ".events",
			} {
				value[chromedp.Void](p, fmt.Sprintf("document.querySelector(%q).focus()", selector))
				p.press(enter)
				p.await(fmt.Sprintf("document.querySelector('.panel %s')", loaded))
				equal(p, fmt.Sprintf("%d + ' ' + %s.join()", width, scrolled), fmt.Sprintf("%d %s", width, panel))
				top := value[float64](p, "document.getElementById('panel-title').getBoundingClientRect().top")
				if top < 0 || top > 690 {
					t.Errorf("width %d: the title of the panel is at %.0f", width, top)
				}
				p.press(escape)
				equal(p, "document.getElementById('panel').hidden", true)
			}
		}
	}
	p.size(1600, 700)
	p.open(s.url(""))
	equal(p, shown, 41)
	value[chromedp.Void](p, "scrollTo(0, document.documentElement.scrollHeight)")
	p.click(`[data-pod="shop/database-2"]`)
	p.await("document.querySelector('.panel .timeline .line')")
	expect.Equal(t, "whether the title of the panel is in the window", true, value[bool](p, `(() => {
		const { top, bottom } = document.getElementById('panel-title').getBoundingClientRect(); return scrollY > 0 && top >= 0 && bottom <= innerHeight; })()`))
}
