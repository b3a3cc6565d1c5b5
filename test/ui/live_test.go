// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Expressions for the connection.
const (
	connection = "document.getElementById('connection').dataset.state"
	// notice is the notice at the top, or empty.
	notice = "[document.getElementById('notice')].map((n) => n.hidden ? '' : n.innerText)[0]"
	// connect makes a waiting page connect at once, as the browser does when the network is back.
	connect = "void dispatchEvent(new Event('online'))"
)

func TestLiveUpdates(t *testing.T) {
	w := sample()
	_, p := show(t, w, "")
	equal(p, shown, 41)
	value[chromedp.Void](p, "window.cellBefore = document.querySelector('[data-pod=\"shop/database-0\"]')")
	equal(p, "document.getElementById('live').innerText", "41 pods: Failed: 7, Unknown: 2, No state: 2, Succeeded: 30. 3 problems.")

	w.set(podOf("shop", "StatefulSet", "database", "database-0", "node-1", probe("database-role", "role", failed, 0, "secondary")),
		podOf("shop", "StatefulSet", "database", "database-10", "node-1", probe("database-role", "role", unknown, 0, "")),
		podOf("new", "DaemonSet", "proxy", "proxy-x", "node-2", troubled(probe("proxy", "p", none, 0, ""), "NotPlanned", "not planned")))
	w.remove("shop/database-1")
	equal(
		p, groups, []string{"game-server games · StatefulSet 24", "proxy new · DaemonSet 1", "checkout shop · Deployment 14", "database shop · StatefulSet 3"},
	)
	equal(p, "[...document.querySelectorAll('[data-pod^=\"shop/database\"]')].map((c) => c.ariaLabel)",
		[]string{"database-0, Failed", "database-2, Succeeded", "database-10, Unknown"})
	equal(p, rows+".at(-1)", "shop/database-role 3 1 1 0 1 0")
	equal(p, problems+"[2]", "NotPlanned new/proxy 1 pod not planned")
	equal(p, "document.title", "(4) Seamark")
	equal(p, "[...document.getElementById('namespace').options].map((o) => o.text)",
		[]string{"All namespaces", "games", "new", "shop", "Another namespace…"})
	equal(p, "[...document.querySelectorAll('#states .amount')].map((a) => a.innerText)", []string{"8", "3", "3", "28"})
	// The cell of a pod stays the same element, so that it keeps the focus.
	equal(p, "cellBefore === document.querySelector('[data-pod=\"shop/database-0\"]')", true)
	// A screen reader hears the new numbers once.
	equal(p, "document.getElementById('live').innerText", "42 pods: Failed: 8, Unknown: 3, No state: 3, Succeeded: 28. 4 problems.")
}

// TestRestart checks that the page shows that it is not up to date while the server is away, and afterwards what
// has changed in the meantime.
func TestRestart(t *testing.T) {
	w := sample()
	s, p := show(t, w, "?pod=shop/database-0")
	equal(p, shown, 41)
	value[chromedp.Void](p, `document.querySelector('[data-pod="games/game-server-7"]').focus()`)
	s.cut()
	equal(p, connection, "waiting")
	p.await(notice + `.match(/^The page is not connected and shows the state of \d\d:\d\d:\d\d/)`)
	equal(p, shown, 41)

	w.remove("shop/database-2")
	w.set(podOf("shop", "StatefulSet", "database", "database-0", "node-1", probe("database-role", "role", failed, 0, "secondary")))
	s.start()
	value[chromedp.Void](p, connect)
	p.awaitLive()
	equal(p, notice, "")
	equal(p, shown, 40)
	equal(p, "document.querySelector('.probes h4').innerText", "Failed database-role#role")
	equal(p, focused, "games/game-server-7")
}

// TestReconnectWithoutHelp checks that the page connects again by itself after the connection was cut.
func TestReconnectWithoutHelp(t *testing.T) {
	w := sample()
	s, p := show(t, w, "")
	equal(p, shown, 41)
	s.cut()
	equal(p, connection, "waiting")
	w.remove("shop/database-2")
	s.start()
	p.awaitLive()
	equal(p, shown, 40)
}

func TestSourceFails(t *testing.T) {
	w := sample()
	_, p := show(t, w, "")
	equal(p, shown, 41)
	w.refuse(errBroken)
	equal(p, connection, "waiting")
	p.await(notice + `.includes('` + errBroken.Error() + `')`)
	equal(p, shown, 41)
	w.refuse(nil)
	p.awaitLive()
	equal(p, notice, "")
}

// TestSourceIsSilent checks that the page is usable while the server does not know the pods yet.
func TestSourceIsSilent(t *testing.T) {
	w := sample()
	w.hush(true)
	s := newSite(t, w)
	p := newTab(t, s.host)
	p.do(chromedp.Navigate(s.url("")))
	equal(p, "document.getElementById('source').innerText", "Cluster · jane · v0.1.0")
	equal(p, connection, "connecting")
	equal(p, "document.getElementById('no-pods').innerText", "Loading…")
	equal(p, "document.getElementById('no-problems').hidden", true)
	p.press("?")
	equal(p, "document.getElementById('help').open", true)
	p.press(escape)
	w.hush(false)
	p.awaitLive()
	equal(p, shown, 41)
}

func TestRefusal(t *testing.T) {
	for name, refusal := range map[string]*web.Refusal{
		"not authenticated": {Status: 401, Message: "the token has expired"},
		"no permission":     &refused,
	} {
		t.Run(name, func(t *testing.T) {
			w := sample()
			w.refuse(refusal)
			s := newSite(t, w)
			s.set(web.Access{User: "jane"})
			p := newTab(t, s.host)
			p.do(chromedp.Navigate(s.url("")))
			equal(p, connection, "refused")
			equal(p, "document.getElementById('connection-text').innerText", "Access refused")
			equal(p, notice, "The server refused access: "+refusal.Message+".")
			w.refuse(nil)
			value[chromedp.Void](p, connect)
			p.awaitLive()
			equal(p, shown, 41)
			equal(p, notice, "")
			equal(p, "document.getElementById('source').innerText", "Cluster · jane · v0.1.0")
			equal(p, "document.getElementById('partial').checkVisibility()", true)
		})
	}
}

// TestNamespaces checks that the page starts with the namespace of the command, and that others can be entered.
func TestNamespaces(t *testing.T) {
	s := newSite(t, sample())
	s.stop()
	s.session.Namespace = "shop"
	s.start()
	p := newTab(t, s.host)
	p.open(s.url(""))
	equal(p, shown, 17)
	equal(p, "location.search", "?namespace=shop")
	equal(p, "[...document.getElementById('namespace').options].map((o) => o.text)", []string{"All namespaces", "shop", "Another namespace…"})
	p.choose("#namespace", "?")
	equal(p, focused, "namespace-name")
	p.press("games")
	p.press(enter)
	equal(p, shown, 24)
	equal(p, "location.search", "?namespace=games")
}

// podOfMany returns one of many pods. 20 pods have the same workload, and 10 workloads the same namespace.
func podOfMany(i int, state v1alpha1.ProbeState) model.Pod {
	workload := fmt.Sprintf("server-%d", i/20)
	namespace := fmt.Sprintf("team-%d", i/200)
	return podOf(namespace, "StatefulSet", workload, fmt.Sprintf("%s-%d", workload, i%20), fmt.Sprintf("node-%d", i%100),
		probe("busy", "idle", state, 0, fmt.Sprintf("%d sessions", i%7)))
}

// heap returns the memory of live objects of the process, which contains the server and its source.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}

// TestManyPods shows 10,000 pods, then 2,000 changes at once, and checks that the page is right each time. It logs
// times and memory, which depend on the machine.
func TestManyPods(t *testing.T) {
	const pods, changes = 10_000, 2_000
	w := newWorld(nil)
	for i := range pods / 200 {
		w.markers = append(w.markers, markerOf(fmt.Sprintf("team-%d", i), "busy"))
	}
	for i := range pods {
		w.set(podOfMany(i, map[bool]v1alpha1.ProbeState{true: failed, false: succeeded}[i%10 == 0]))
	}
	before := heap()
	s := newSite(t, w)
	p := newTab(t, s.host)
	p.open(s.url(""))
	equal(p, shown, pods)
	t.Logf("10,000 pods: first contentful paint after %.0f ms, all pods drawn before %.0f ms",
		value[float64](p, "performance.getEntriesByName('first-contentful-paint')[0].startTime"), value[float64](p, "performance.now()"))
	equal(p, "document.getElementById('pods-total').innerText", "10,000")
	equal(p, "[...document.querySelectorAll('#states .amount')].map((a) => a.innerText)", []string{"1,000", "0", "0", "9,000"})
	equal(p, "document.querySelectorAll('.group').length", pods/20)
	equal(p, "document.getElementById('markers-total').innerText", "50")
	equal(p, rows+"[0]", "team-0/busy 200 20 0 0 180 0")
	equal(p, "document.querySelector('[data-pod=\"team-49/server-499-19\"]').className", "cell succeeded")

	call(p, heapprofiler.CollectGarbage, cdp.Empty{})
	t.Logf("10,000 pods: %.0f MiB of JavaScript objects in the page, %.0f MiB in the server with one viewer",
		call(p, cdpruntime.GetHeapUsage, cdp.Empty{}).UsedSize/(1<<20), heap()-before)

	value[chromedp.Void](p, "window.started = performance.now()")
	changed := make([]model.Pod, 0, changes)
	for i := range changes {
		changed = append(changed, podOfMany(5*i+1, unknown))
	}
	w.set(changed...)
	equal(p, "document.querySelectorAll('.cell.unknown').length", changes)
	t.Logf("2,000 changes: drawn before %.0f ms", value[float64](p, "performance.now() - started"))
	equal(p, "[...document.querySelectorAll('#states .amount')].map((a) => a.innerText)", []string{"1,000", "2,000", "0", "7,000"})
	equal(p, rows+"[0]", "team-0/busy 200 20 40 0 140 0")

	value[chromedp.Void](p, "document.getElementById('filter').focus()")
	p.press("server-123 ")
	equal(p, shown, 20)
	p.press(escape)
	equal(p, shown, pods)
}

// world is a Source whose pods and markers a test changes. It also fails as the test asks.
type world struct {
	mu      sync.Mutex
	pods    map[string]model.Pod
	markers []model.Marker
	sets    *model.Sets
	events  []history.Event
	// others are the events of each pod in the panel.
	others []model.Event
	// woken receives a value after each change, for each scope that is followed.
	woken map[chan struct{}]bool
	// refusal is what Open and Timeline return instead of an answer.
	refusal error
	// silent is whether nothing is known about the pods.
	silent bool
	// noEvents is why timelines have no events, or nil.
	noEvents error
}

func newWorld(markers []model.Marker, pods ...model.Pod) *world {
	w := &world{pods: map[string]model.Pod{}, markers: markers, woken: map[chan struct{}]bool{}}
	w.set(pods...)
	return w
}

// change changes the world, and wakes those who follow it.
func (w *world) change(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	for woken := range w.woken {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// set adds or replaces pods.
func (w *world) set(pods ...model.Pod) {
	w.change(func() {
		for _, pod := range pods {
			w.pods[pod.Key] = pod
		}
	})
}

// guard protects a pod by a guard, for three minutes.
func (w *world) guard(key, name string) {
	w.change(func() {
		pod := w.pods[key]
		pod.Guard = &probestatus.Guard{Name: name, Since: metav1.NewTime(time.Now().Add(-3 * time.Minute))}
		w.pods[key] = pod
	})
}

func (w *world) remove(keys ...string) {
	w.change(func() {
		for _, key := range keys {
			delete(w.pods, key)
		}
	})
}

// refuse makes all calls return an error, and ends what is open with it. nil ends this.
func (w *world) refuse(err error) { w.change(func() { w.refusal = err }) }

// hush makes the world silent, or lets it speak again.
func (w *world) hush(silent bool) { w.change(func() { w.silent = silent }) }

// withhold makes timelines have no events for a reason.
func (w *world) withhold(reason error) { w.change(func() { w.noEvents = reason }) }

// record adds events, which timelines show.
func (w *world) record(events ...history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, events...)
}

// Open implements web.Source.
func (w *world) Open(ctx context.Context, scope web.Scope) (web.Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return nil, w.refusal
	}
	woken := make(chan struct{}, 1)
	w.woken[woken] = true
	woken <- struct{}{}
	return func(yield func(web.Change, error) bool) {
		defer w.change(func() { delete(w.woken, woken) })
		for {
			select {
			case <-woken:
			case <-ctx.Done():
				yield(web.Change{}, ctx.Err())
				return
			}
			if change, known, err := w.all(scope.Namespace); (known || err != nil) && !yield(change, err) {
				return
			}
		}
	}, nil
}

// all returns everything in the namespace, if it is known.
func (w *world) all(namespace string) (change web.Change, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hidden := func(of string) bool { return namespace != "" && namespace != of }
	change = web.Change{
		All: true, Pods: slices.DeleteFunc(slices.Collect(maps.Values(w.pods)), func(p model.Pod) bool { return hidden(p.Namespace) }),
		Markers: slices.DeleteFunc(slices.Clone(w.markers), func(m model.Marker) bool { return hidden(m.Namespace) }),
	}
	if w.sets != nil {
		sets := model.SetsOf(slices.DeleteFunc(slices.Clone(w.sets.Sets), func(s model.Set) bool { return hidden(s.Namespace) }), w.sets.Note)
		change.Sets = &sets
	}
	return change, !w.silent, w.refusal
}

// Timeline implements web.Source.
func (w *world) Timeline(_ context.Context, query web.TimelineQuery) (model.Timeline, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return model.Timeline{}, w.refusal
	}
	pod, found := w.pods[query.Pod.String()]
	if !found {
		return model.Timeline{}, web.NotFound(query.Pod)
	}
	var rows []probestatus.Row
	for _, p := range pod.Probes {
		rows = append(rows, probestatus.Row{
			UID: pod.UID, Marker: p.Marker, Probe: p.Probe, Container: p.Container,
			State: p.State, LastTransitionTime: metav1.NewTime(p.Since), Message: p.Message, Problem: p.Problem,
		})
	}
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID, CreationTimestamp: metav1.NewTime(pod.Created)}}
	timeline := model.TimelineOf(object, rows, w.events, w.noEvents, query.Since, time.Now())
	timeline.Events = w.others
	return timeline, nil
}

// Why a source fails.
var (
	errBroken   = errors.New("the API server does not answer")
	errNoEvents = errors.New("jane may not list events in namespace shop, so changes before the last one are not known")
	refused     = web.Refusal{Status: http.StatusForbidden, Message: "jane may not list pods in all namespaces"}
)
