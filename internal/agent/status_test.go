// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
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

// openKruisePlan returns an object on which the daemon of OpenKruise has reported.
func openKruisePlan() *v1alpha1.NodePodProbe {
	object := nodePlan()
	object.Status = statusOf("m#p", failed)
	return object
}

func TestStatus(t *testing.T) {
	cases := map[string]struct {
		object *v1alpha1.NodePodProbe
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
			object: openKruisePlan(),
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
				"0s wrote node.0: m#p=Failed()", "2s status 0:",
				"11s wrote node.0: m#p=Succeeded(ok)", "11s event m#p Succeeded",
			},
		},
		"takeover": {
			object: openKruisePlan(),
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
				"1.01s wrote node.0: m#p=Failed()", "3.02s status 1:",
				"1m1.01s wrote node.0: m#p=Succeeded(ok)", "1m1.01s event m#p Succeeded",
			},
		},
		"takeover by an agent that ends soon": {
			object: openKruisePlan(),
			play: func(h *harness) {
				pass(time.Second)
				h.putInForce()
				h.restoreStates()
				pass(50 * time.Millisecond)
			},
			want: []string{"1s wrote node.0: m#p=Failed()"},
		},
		"takeover while OpenKruise reports": {
			object: openKruisePlan(),
			play: func(h *harness) {
				pass(time.Second)
				h.fail(faults{slow: map[string]time.Duration{"node.0": 900 * time.Millisecond}})
				h.putInForce()
				h.restoreStates()
				pass(10 * time.Millisecond)
				h.withServer(func() { h.edit(func(o *v1alpha1.NodePodProbe) { o.Status = statusOf("m#p", succeeded) }) })
				h.observeStored()
				pass(10 * time.Second)
			},
			want: []string{"1.9s wrote node.0: m#p=Failed()", "3.9s status 1:"},
		},
		"takeover without slices": {
			object: openKruisePlan(),
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
			want: []string{"0s rejected node.0", "wrote node.0: m#p=Failed()", "status 1:"},
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
				h := newHarness(t, tc.object)
				tc.play(h)
				synctest.Wait()
				h.stop()
				expect.Equal(t, "log", tc.want, h.log)
			})
		})
	}
}
