// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// generation gives the stored object another generation and puts it in force.
func (h *harness) generation(generation int64) {
	h.withServer(func() {
		h.edit(func(object *v1alpha1.NodePodProbe) { object.Generation = generation })
	})
	h.putInForce()
}

// restoreStates passes the restored states to the reporter, as a worker does.
func (h *harness) restoreStates() {
	<-h.listed
	var object *v1alpha1.NodePodProbe
	// The keeper of the status may write already.
	h.withServer(func() { object = h.object })
	for key, state := range h.Restore(object) {
		h.ProbeChanged(worker.Change{Key: key, State: state})
	}
}

func legacyPlan() *v1alpha1.NodePodProbe {
	object := nodePlan()
	object.Status = statusOf("m#p", failed)
	return object
}

// emptyLegacyPlan returns an object on which an earlier release has reported that no probe has a
// result yet.
func emptyLegacyPlan() *v1alpha1.NodePodProbe {
	object := nodePlan()
	object.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, Pods: 1, Probes: 3}
	return object
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		object *v1alpha1.NodePodProbe
		mirror bool
		play   func(h *harness)
		want   []string
	}{
		"plans in quick succession": {
			play: func(h *harness) {
				h.putInForce()
				pass(5 * time.Second)
				for generation := range int64(5) {
					h.generation(2 + generation)
					pass(500 * time.Millisecond)
				}
				pass(time.Minute)
			},
			want: []string{"0s status 1:", "8s status 6:"},
		},
		"plans that keep changing": {
			play: func(h *harness) {
				h.putInForce()
				pass(5 * time.Second)
				for generation := range int64(50) {
					h.generation(2 + generation)
					pass(500 * time.Millisecond)
				}
			},
			want: []string{"0s status 1:", "15s status 21:", "25s status 41:", "30s status 51:"},
		},
		"CRD of OpenKruise": {
			play: func(h *harness) {
				h.fail(faults{pruned: true})
				h.putInForce()
				pass(time.Second)
				h.observeStored()
				h.transition("p", succeeded, "ok")
				pass(time.Second)
				h.observeStored()
				h.generation(2)
				pass(time.Minute)
				h.observeStored()
				pass(time.Hour)
			},
			want: []string{
				"0s status unchanged", "1s wrote node.0: m#p=Succeeded(ok)", "1s event m#p Succeeded", "3s status unchanged",
			},
		},
		"takeover with the CRD of OpenKruise": {
			object: legacyPlan(),
			play: func(h *harness) {
				h.fail(faults{pruned: true})
				h.putInForce()
				h.restoreStates()
				pass(time.Second)
				for range 10 {
					h.observeStored()
					pass(time.Second)
				}
				h.transition("p", succeeded, "ok")
				pass(time.Second)
				h.observeStored()
				pass(time.Minute)
			},
			want: []string{
				"0s wrote node.0: m#p=Failed()", "0s status unchanged",
				"11s wrote node.0: m#p=Succeeded(ok)", "11s event m#p Succeeded", "11s status 0: m#p=Succeeded(ok)",
			},
		},
		"takeover": {
			object: legacyPlan(),
			play: func(h *harness) {
				pass(time.Second) // The agent has listed its slices without the delay.
				h.fail(faults{delay: 10 * time.Millisecond})
				h.putInForce()
				h.restoreStates()
				pass(time.Minute)
				h.observeStored()
				h.transition("p", succeeded, "ok")
				pass(time.Minute)
			},
			want: []string{
				"1.01s wrote node.0: m#p=Failed()", "1.02s status 1: m#p=Failed()",
				"1m1.01s wrote node.0: m#p=Succeeded(ok)", "1m1.01s event m#p Succeeded", "1m1.02s status 1: m#p=Succeeded(ok)",
			},
		},
		"takeover without states": {
			object: emptyLegacyPlan(),
			play: func(h *harness) {
				h.putInForce()
				pass(time.Minute)
				h.observeStored()
				h.transition("p", succeeded, "ok")
				pass(time.Minute)
			},
			want: []string{
				"0s status 1:", "1m0s wrote node.0: m#p=Succeeded(ok)", "1m0s event m#p Succeeded", "1m0s status 1: m#p=Succeeded(ok)",
			},
		},
		"takeover without slices": {
			object: legacyPlan(),
			play: func(h *harness) {
				h.putInForce()
				h.fail(faults{denied: map[string]error{"node.0": errDenied}})
				h.restoreStates()
				pass(150 * time.Millisecond)
				h.fail(faults{})
				pass(time.Minute)
				last := h.log[len(h.log)-2:]
				for i, line := range last {
					_, last[i], _ = strings.Cut(line, " ")
				}
			},
			want: []string{"0s rejected node.0", "wrote node.0: m#p=Failed()", "status 1: m#p=Failed()"},
		},
		"permanent copy": {
			mirror: true,
			play: func(h *harness) {
				h.transition("p", succeeded, "ok")
				h.putInForce()
				pass(24 * time.Hour)
				h.observeStored()
				h.transition("p", failed, "no")
				pass(time.Second)
			},
			want: []string{
				"0s wrote node.0: m#p=Succeeded(ok)", "0s event m#p Succeeded", "0s status 1: m#p=Succeeded(ok)",
				"24h0m0s wrote node.0: m#p=Failed(no)", "24h0m0s event m#p Failed", "24h0m0s status 1: m#p=Failed(no)",
			},
		},
		"API server unavailable": {
			play: func(h *harness) {
				h.putInForce()
				pass(5 * time.Second)
				h.fail(faults{down: true})
				h.generation(2)
				pass(time.Minute)
				if refused := len(h.take()); refused < 10 || refused > 40 {
					h.t.Errorf("%d attempts in a minute, want 10 to 40", refused)
				}
				h.fail(faults{})
				pass(7 * time.Second)
				_, h.log[0], _ = strings.Cut(h.log[0], " ")
			},
			want: []string{"status 2:"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tc.object == nil {
					tc.object = nodePlan()
				}
				h := newHarnessWith(t, tc.object, nil, tc.mirror)
				tc.play(h)
				synctest.Wait()
				h.stop()
				if diff := cmp.Diff(tc.want, h.log); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestCopyOfStatesEnds checks that the status has a copy of the states for an hour after a takeover
// or a restart, and then none.
func TestCopyOfStatesEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := newHarness(t, legacyPlan())
		before.putInForce()
		before.restoreStates()
		pass(50 * time.Minute)
		before.observeStored()
		before.stop()

		h := newHarnessWith(t, before.object, before.slices, false)
		h.putInForce()
		h.restoreStates()
		pass(mirrorFor - time.Minute)
		if lines := h.take(); len(lines) > 0 {
			t.Errorf("log of the hour after the restart = %v, want none", lines)
		}
		pass(mirrorJitter + 2*time.Minute)
		h.observeStored()
		pass(24 * time.Hour)
		h.stop()
		if lines := h.take(); len(lines) != 1 || len(h.object.Status.PodProbeStatuses) > 0 || !h.object.Status.ProbeReports {
			t.Errorf("log of the next day = %v, want one write that removes the states", lines)
		}
	})
}

// TestWhenProbePlansAreRead checks when the status says that the agent reads ProbePlans: at once on a new
// node and after a restart, and an hour after an agent that does not read them.
func TestWhenProbePlansAreRead(t *testing.T) {
	const never = 0
	with := func(status v1alpha1.NodePodProbeStatus) *v1alpha1.NodePodProbe {
		object := nodePlan()
		object.Status = status
		return object
	}
	cases := map[string]struct {
		object *v1alpha1.NodePodProbe
		mirror bool
		// after is the latest time; the earliest is an hour, or the start if that is a second.
		after time.Duration
	}{
		"new node":             {object: nodePlan(), after: time.Second},
		"restart":              {object: with(v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, ProbeReports: true, ProbePlans: true}), after: time.Second},
		"earlier release":      {object: with(v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, ProbeReports: true}), after: mirrorFor + mirrorJitter + time.Second},
		"states in the status": {object: legacyPlan(), after: mirrorFor + mirrorJitter + time.Second},
		"permanent copy":       {object: nodePlan(), mirror: true, after: never},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarnessWith(t, tc.object, nil, tc.mirror)
				says := func() (yes bool) {
					h.withServer(func() { yes = h.object.Status.ProbePlans })
					return yes
				}
				h.putInForce()
				h.restoreStates()
				earlier := time.Duration(0)
				if tc.after > time.Second {
					earlier = mirrorFor
				}
				pass(earlier)
				if earlier > 0 && says() {
					t.Error("the status says so within the hour")
				}
				pass(max(tc.after-earlier, time.Second))
				if got, want := says(), tc.after != never; got != want {
					t.Errorf("the status says so: %t, want %t", got, want)
				}
				if tc.after == never {
					pass(24 * time.Hour)
				}
				h.stop()
				if got, want := says(), tc.after != never; got != want {
					t.Errorf("the last status says so: %t, want %t", got, want)
				}
			})
		})
	}
}

// TestCopyOfStatesIsWrittenOncePerBatch checks that states in many slices cause one write of the
// copy.
func TestCopyOfStatesIsWrittenOncePerBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarnessWith(t, manyPods(64), nil, true)
		h.all(64, succeeded)
		h.putInForce()
		pass(time.Second)
		h.take()
		h.all(64, failed)
		pass(time.Second)
		h.stop()
		if lines := h.take(); count(lines, "wrote node.") != 8 || count(lines, "status 1") != 1 || !strings.Contains(lines[len(lines)-1], "status") {
			t.Errorf("log = %v, want 8 slices and then the status", lines)
		}
	})
}
