// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestTransitions has the probe "p" with a condition, which the pod has since the first second, and "q" without one.
func TestTransitions(t *testing.T) {
	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	marker := builders.Marker("ns", "m").
		Probe(builders.Probe("p").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "idle", "true").Label(v1alpha1.ProbeFailed, "a", "b")).
		Probe(builders.Probe("q").StaleAfter(10).Label(v1alpha1.ProbeSucceeded, "role", "primary").Label(v1alpha1.ProbeSucceeded, "idle", "taken")).
		Probe(builders.Probe("r").Annotation(v1alpha1.ProbeSucceeded, "cost", "1"))
	compiled, err := plan.Compile(marker.Build())
	expect.NoError(t, err)
	marked := builders.Pod("ns", "a").Label("app", "game").
		Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionFalse, LastTransitionTime: at(1)}).
		ManagedFields("seamark", "status", `{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}}}}`).Build()
	states := make(mark.States)
	for i, probe := range []string{"p", "q", "r"} {
		states[identity.ID{Marker: "m", Probe: probe}] = v1alpha1.ContainerProbeState{State: v1alpha1.ProbeFailed, LastTransitionTime: at(int64(5 + i))}
	}
	p := func(second int64) guard.Transition {
		return guard.Transition{Labels: []string{"a", "idle"}, At: at(second).Time}
	}
	q := func(second int64) guard.Transition {
		return guard.Transition{Labels: []string{"role"}, At: at(second).Time}
	}
	outage := staleness.Outage{Cause: staleness.NodeGone, Since: at(20).Time, Length: time.Minute}
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		report mark.PodReport
		want   []guard.Transition
	}{
		"condition and report": {marked, mark.PodReport{Reported: true, States: states}, []guard.Transition{p(1), q(6)}},
		"only the condition":   {marked, mark.PodReport{}, []guard.Transition{p(1), {Labels: q(0).Labels}}},
		"not written yet": {
			builders.Pod("ns", "a").Label("app", "game").Build(), mark.PodReport{Reported: true, States: states}, []guard.Transition{p(5), q(6)},
		},
		"stale": {marked, mark.PodReport{Reported: true, States: states, Outage: outage}, []guard.Transition{p(1), q(30)}},
		"nothing": {
			builders.Pod("ns", "a").Label("app", "game").Build(), mark.PodReport{}, []guard.Transition{{Labels: p(0).Labels}, {Labels: q(0).Labels}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := podview.New(test.pod, []*plan.Marker{compiled}, podview.KubeletNode, mark.NodeReport{}, podview.Options{})
			v.Report = test.report
			owned, err := mark.Owned(test.pod)
			expect.NoError(t, err)
			expect.Equal(t, "transitions", test.want, v.Transitions(owned))
		})
	}
}
