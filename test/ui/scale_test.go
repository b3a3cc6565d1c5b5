// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/web/model"
)

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
