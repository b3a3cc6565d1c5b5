// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestRestoredDatabase checks that an agent repairs what an older copy of the database has, that it
// writes nothing else, and that it has read again within minutes of the list of the watch.
func TestRestoredDatabase(t *testing.T) {
	cases := map[string]struct {
		// lose changes what the API server stores. Before is what it stored earlier.
		lose func(h *harness, before map[string]*seamarkv1alpha1.ProbeReport)
		want []string
	}{
		"nothing": {lose: func(*harness, map[string]*seamarkv1alpha1.ProbeReport) {}},
		"a newer state": {lose: func(h *harness, before map[string]*seamarkv1alpha1.ProbeReport) {
			h.slices["node.0"] = before["node.0"]
		}, want: []string{"wrote node.0: m#p=Failed(0) m#p=Succeeded(1)"}},
		"all new slices": {
			lose: func(h *harness, _ map[string]*seamarkv1alpha1.ProbeReport) { clear(h.slices) },
			want: []string{"wrote node.0: m#p=Failed(0) m#p=Succeeded(1)"},
		},
		"a newer status": {
			lose: func(h *harness, _ map[string]*seamarkv1alpha1.ProbeReport) { h.object.Status.ObservedGeneration = 0 }, want: []string{"status 1:"},
		},
		"the same status": {lose: func(h *harness, _ map[string]*seamarkv1alpha1.ProbeReport) { h.object.Spec.PodProbes = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, manyPods(2))
				h.all(2, succeeded)
				h.putInForce()
				pass(2 * time.Minute)
				before := map[string]*seamarkv1alpha1.ProbeReport{"node.0": h.slices["node.0"].DeepCopy()}
				h.turn(0, failed)
				pass(time.Minute)
				h.take()
				h.withServer(func() {
					h.object = h.object.DeepCopy()
					h.object.ResourceVersion = "2"
					tc.lose(h, before)
				})
				h.Relisted()
				h.observeStored()
				pass(relistJitter + 10*time.Second)
				h.stop()
				var got []string
				for _, line := range h.take() {
					_, what, _ := strings.Cut(line, " ")
					got = append(got, what)
				}
				expect.Equal(t, "log", tc.want, got)
			})
		})
	}
}

// TestRelist checks which lists of a watch are reported: all but the first one.
func TestRelist(t *testing.T) {
	relisted := 0
	w := objectStore{newWatched(func() { relisted++ })}
	for n, objects := range [][]any{{}, {nodePlan()}, nil} {
		if err := w.Replace(objects, "1"); err != nil || relisted != n {
			t.Errorf("list %d: relisted %d times, error %v", n, relisted, err)
		}
	}
	if err := w.Update(nodePlan()); err != nil || relisted != 2 {
		t.Errorf("relisted %d times after an update, error %v", relisted, err)
	}
}

// TestPlanOfSameGeneration checks that a plan is put in force that differs from the one in force,
// although it has the same generation: the database was restored, and the plan was written again.
func TestPlanOfSameGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{start: time.Now()}
		f := &follower{watched: newWatched(nil), runner: r, report: r}
		grace := time.NewTimer(time.Hour)
		first, status, other := nodePlan(), nodePlan(), nodePlan()
		first.UID, status.UID, other.UID = types.UID("1"), types.UID("1"), types.UID("1")
		status.Status.ObservedGeneration = 1
		other.Spec.PodProbes[0].Probes = other.Spec.PodProbes[0].Probes[:1]
		for _, object := range []*v1alpha1.NodePodProbe{first, status, other} {
			f.follow(object, grace)
		}
		want := []string{"0s run", "0s in force: 1/1", "0s run", "0s in force: 1/1"}
		expect.Equal(t, "log", want, r.log)
	})
}

// TestPodReturnsToPlan checks that an entry of a pod that was not planned meanwhile is removed
// before the first result: its state is out of date.
func TestPodReturnsToPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nodePlan())
		h.putInForce()
		pass(time.Second)
		h.transition("p", succeeded, "ok")
		pass(time.Second)
		h.replan(2, nil)
		h.ProbeGone(keyOf("p"))
		pass(time.Minute)
		h.replan(3, nodePlan().Spec.PodProbes)
		pass(time.Second)
		h.transition("p", failed, "no")
		pass(time.Second)
		h.stop()
		want := []string{
			"0s status 1:",
			"1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded",
			"3s status 2:",
			"1m2s wrote node.0:",
			"1m3s wrote node.0: m#p=Failed(no)", "1m3s event m#p Failed", "1m3s status 3:",
		}
		expect.Equal(t, "log", want, statusLast(h.log))
	})
}

// TestRunningPodIsRemoved checks that the entry of a pod that is not planned any more is removed if
// its containers still run, and that the entry of a deleted pod causes no write.
func TestRunningPodIsRemoved(t *testing.T) {
	running := map[string]bool{"pod-uid": true}
	for name, tc := range map[string]struct {
		// runs are the pods with running containers when the pod leaves the plan, and later those after a minute.
		runs, later map[string]bool
		want        []string
	}{
		"running":  {runs: running, later: running, want: []string{"2m2s wrote node.0:", "10m2s deleted node.0"}},
		"restarts": {later: running, want: []string{"3m2s wrote node.0:", "10m2s deleted node.0"}},
		"deleted":  {want: []string{"10m2s deleted node.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, nodePlan())
				h.withServer(func() { h.runs = tc.runs })
				h.putInForce()
				pass(time.Second)
				h.transition("p", succeeded, "ok")
				pass(time.Second)
				h.replan(2, nil)
				h.ProbeGone(keyOf("p"))
				pass(time.Minute)
				if h.withServer(func() { h.runs = tc.later }); tc.later != nil {
					h.ContainerRuns()
				}
				pass(time.Hour)
				h.stop()
				want := append([]string{
					"0s status 1:",
					"1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded",
					"3s status 2:",
				}, tc.want...)
				expect.Equal(t, "log", want, statusLast(h.log))
			})
		})
	}
}

// TestStatesOfUnplannedProbes edits a probe that cannot run, so that no worker has it and reports its
// end. The states are those of the plan, however many plans there were.
func TestStatesOfUnplannedProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nodePlan())
		h.putInForce()
		for generation := range int64(100) {
			pods := nodePlan().Spec.PodProbes
			pods[0].Probes = pods[0].Probes[:1]
			pods[0].Probes[0].Name = fmt.Sprintf("m#p%d", generation)
			h.replan(2+generation, pods)
			pass(time.Second)
		}
		expect.Equal(t, "states", 1, len(h.states))
		h.replan(200, nil)
		h.stop()
		expect.Equal(t, "states of an empty plan", 0, len(h.states))
	})
}

// TestPlanWaitsForReportedStates checks that no plan is put in force before the states that an
// earlier agent reported are known, and that only the newest one is then.
func TestPlanWaitsForReportedStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{start: time.Now()}
		listed := make(chan struct{})
		f := &follower{watched: newWatched(nil), runner: r, report: r, listed: listed}
		stop := f.start(t)
		for generation := range int64(3) {
			pass(time.Second)
			f.watched.set(planned("a", generation+1, "m#p"))
		}
		pass(time.Minute)
		if f.synced.Load() {
			t.Error("the agent is ready before the reported states are known")
		}
		object := planned("a", 4, "m#p")
		object.Status = statusOf("m#p", failed)
		f.watched.set(object)
		pass(time.Second)
		close(listed)
		pass(time.Minute)
		stop()
		if diff := cmp.Diff([]string{"1m4s run m#pFailed", "1m4s in force: a/4"}, r.log); diff != "" || !f.synced.Load() {
			t.Errorf("ready: %t, calls (-want +got):\n%s", f.synced.Load(), diff)
		}
	})
}
