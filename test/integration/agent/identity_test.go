// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
)

// TestRecreatedMarkerStartsWithoutState checks that an agent does not report the state of a deleted
// marker for a new one with the same name, whether it runs or starts when it gets the new plan.
func TestRecreatedMarkerStartsWithoutState(t *testing.T) {
	for name, down := range map[string]bool{"agent down": true, "agent up": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shared, critest.Streamed)
			w.run("p")
			w.setAnswer("yes", answer{stdout: "old"})
			planOf := func(plan string, change func(*v1alpha1.ContainerProbe)) v1alpha1.PodProbe {
				pod := w.pod("p", "yes")
				pod.Probes[0].Plan = plan
				change(&pod.Probes[0])
				return pod
			}
			w.plan(planOf("1", func(*v1alpha1.ContainerProbe) {}))
			stop := w.startAgent()
			if state := w.reported("p yes", succeeded, "old"); state.Plan != "1" || state.ContainerID == "" {
				t.Errorf("state of plan %q and container %q, want plan 1 and an ID", state.Plan, state.ContainerID)
			}
			if down {
				stop()
			}
			// The new probe has no result for an hour.
			w.plan(planOf("2", func(p *v1alpha1.ContainerProbe) { p.Probe.InitialDelaySeconds = 3600 }))
			if down {
				w.startAgent()
			}
			w.eventually(func() (bool, string) {
				object := w.object()
				return object.Status.ObservedGeneration == object.Generation && len(w.states()) == 0,
					fmt.Sprintf("generation %d, states %v", object.Status.ObservedGeneration, w.states())
			})
			w.setAnswer("yes", answer{stdout: "old"})
			w.plan(planOf("2", func(*v1alpha1.ContainerProbe) {}))
			if state := w.reported("p yes", succeeded, "old"); state.Plan != "2" {
				t.Errorf("state of plan %q, want 2", state.Plan)
			}
			w.eventually(func() (bool, string) {
				return len(w.events()) == 2, fmt.Sprintf("events %v, want one of each marker", w.events())
			})
		})
	}
}

// TestEditedProbeKeepsItsState edits the command and then the container of a probe. The state has
// the time of its only transition, so it was never another one.
func TestEditedProbeKeepsItsState(t *testing.T) {
	w := newWorld(t, shared, critest.Streamed)
	w.run("p")
	w.setAnswer("old", answer{stdout: "old"})
	w.setAnswer("new", answer{stdout: "new", after: 500 * time.Millisecond})
	planOf := func(command, container string) v1alpha1.PodProbe {
		pod := w.pod("p", "probe")
		pod.Probes[0].Probe.Exec.Command[0] = command
		pod.Probes[0].ContainerName = container
		return pod
	}
	w.plan(planOf("old", "main"))
	stop := w.startAgent()
	first := w.reported("p probe", succeeded, "old")
	unchanged := func(what string, state v1alpha1.ContainerProbeState) {
		t.Helper()
		if !state.LastTransitionTime.Equal(&first.LastTransitionTime) {
			t.Errorf("%s: transition at %s, want the first one at %s", what, state.LastTransitionTime, first.LastTransitionTime)
		}
	}
	// The times are whole seconds.
	<-time.After(time.Until(first.LastTransitionTime.Add(1100 * time.Millisecond)))
	w.plan(planOf("new", "main"))
	unchanged("edited command", w.reported("p probe", succeeded, "new"))

	stop()
	w.setAnswer("restarted", answer{stdout: "restarted"})
	w.plan(planOf("restarted", "main"))
	w.startAgent()
	unchanged("edited while the agent was down", w.reported("p probe", succeeded, "restarted"))

	w.plan(planOf("restarted", "none"))
	w.eventually(func() (bool, string) {
		object := w.object()
		return object.Status.ObservedGeneration == object.Generation, "the plan is not in force"
	})
	unchanged("moved to a container that has not run", w.reported("p probe", succeeded, "restarted"))
	if events := w.events(); len(events) != 1 {
		t.Errorf("events %v, want only that of the first result", events)
	}
}
