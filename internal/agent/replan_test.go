// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

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
		if diff := cmp.Diff(want, statusLast(h.log)); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestRunningPodIsRemoved checks that the entry of a pod that is not planned any more is removed if
// its containers still run, and that the entry of a deleted pod causes no write.
func TestRunningPodIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		runs map[string]bool
		want []string
	}{
		"running": {runs: map[string]bool{"pod-uid": true}, want: []string{"2m2s wrote node.0:", "10m2s deleted node.0"}},
		"deleted": {want: []string{"10m2s deleted node.0"}},
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
				pass(time.Hour)
				h.stop()
				want := append([]string{
					"0s status 1:",
					"1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded",
					"3s status 2:",
				}, tc.want...)
				if diff := cmp.Diff(want, statusLast(h.log)); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
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
		if n := len(h.states); n != 1 {
			t.Errorf("%d states, want one of the planned probe", n)
		}
		h.replan(200, nil)
		h.stop()
		if n := len(h.states); n != 0 {
			t.Errorf("%d states of an empty plan", n)
		}
	})
}
