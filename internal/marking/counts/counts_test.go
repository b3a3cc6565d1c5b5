// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package counts_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/counts"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestCounts(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("p").StaleAfter(60)).Probe(builders.Probe("q")).Build()
	marker.UID = "uid"
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	current := compiled.Probes()[0].Plan.Plan
	second := func(n int64) metav1.Time { return metav1.Unix(n, 500) }
	state := func(name string, state v1alpha1.ProbeState, at int64) v1alpha1.ContainerProbeState {
		return v1alpha1.ContainerProbeState{Name: name, Plan: current, State: state, LastTransitionTime: second(at)}
	}
	old := state("web#p", v1alpha1.ProbeFailed, 99)
	old.Plan = "earlier"
	c, pod := counts.New(compiled), builders.Pod("ns", "a").Build()
	down := staleness.Outage{Cause: staleness.NodeGone, Since: time.Unix(100, 0), Length: time.Minute}
	for _, states := range [][]v1alpha1.ContainerProbeState{
		{state("web#p", v1alpha1.ProbeSucceeded, 3), state("web#q", v1alpha1.ProbeFailed, 9)},
		{state("web#p", v1alpha1.ProbeSucceeded, 7), state("other#p", v1alpha1.ProbeFailed, 50), state("web#gone", v1alpha1.ProbeFailed, 50)},
		{state("web#p", v1alpha1.ProbeUnknown, 5), state("web#q", "Odd", 80)},
		{old},
	} {
		for _, s := range states {
			c.Add(counts.Pod{Object: pod}, parse(t, s.Name), s)
		}
	}
	for _, name := range []string{"web#p", "web#q"} {
		c.Add(counts.Pod{Object: pod, Outage: down}, parse(t, name), state(name, v1alpha1.ProbeSucceeded, 8))
	}
	holdsNot := counts.Pod{Object: pod, Held: map[identity.ID]mark.Hold{parse(t, "web#q"): mark.Lost}}
	for _, name := range []string{"web#p", "web#q"} {
		c.Add(holdsNot, parse(t, name), state(name, v1alpha1.ProbeSucceeded, 6))
	}
	// The container that an edited probe moved away from is not that of the state.
	without := builders.Pod("ns", "b").Build()
	without.Spec.Containers[0].Name = "other"
	c.Add(counts.Pod{Object: without}, parse(t, "web#q"), state("web#q", v1alpha1.ProbeSucceeded, 70))
	status := v1alpha1.PodProbeMarkerStatus{MatchedPods: 7}
	c.Fill(&status)
	at := func(n int64) *metav1.Time { return new(metav1.NewTime(time.Unix(n, 0).UTC())) }
	want := v1alpha1.PodProbeMarkerStatus{
		MatchedPods: 7, Succeeded: 4, Failed: 1, Unknown: 3,
		Probes: []v1alpha1.ProbeCounts{
			{Name: "p", Succeeded: 3, Unknown: 2, Stale: 1, NotRunning: 2, LastTransitionTime: at(160)},
			{Name: "q", Succeeded: 1, Failed: 1, Unknown: 1, NotRunning: 4, LastTransitionTime: at(9)},
		},
	}
	expect.Equal(t, "status", want, status)
}

func parse(t *testing.T, name string) identity.ID {
	t.Helper()
	id, err := identity.Parse(name)
	expect.NoError(t, err)
	return id
}

// The errors in a status are those of the first pods, in any order of the pods.
func TestErrorsAreLimited(t *testing.T) {
	compiled, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p")).Build())
	expect.NoError(t, err)
	c := counts.New(compiled)
	for i := range 30 {
		for _, name := range []string{"web#p", "other#p"} {
			c.AddError(fmt.Sprintf("pod-%02d", 29-i), parse(t, name), v1alpha1.ContainerProbeError{Name: name, Reason: "Odd", Message: "no shell\xff"})
		}
	}
	var status v1alpha1.PodProbeMarkerStatus
	c.Fill(&status)
	var want []v1alpha1.PodError
	for i := range 10 {
		want = append(want, v1alpha1.PodError{Pod: fmt.Sprintf("pod-%02d", i), Probe: "p", Reason: v1alpha1.ProbeCannotRun, Message: "no shell\ufffd"})
	}
	expect.Equal(t, "errors", want, status.PodErrors)
}
