// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestProvided(t *testing.T) {
	const (
		whole = `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:message":{},"f:status":{},"f:type":{}}}}}`
		rest  = `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:type":{}}}}}`
	)
	is := func(status corev1.ConditionStatus) *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("idle", "old").
			Condition(corev1.PodCondition{Type: "game.io/idle", Status: status, Message: "said", LastTransitionTime: metav1.Unix(9, 0)})
	}
	idle := mark.ConditionType("game.io/idle")
	label := func(value string) mark.Marks { return mark.Marks{mark.Label("idle"): text(value)} }
	cases := map[string]struct {
		pod  *builders.PodBuilder
		want mark.Marks
	}{
		"no condition":       {pod: builders.Pod("ns", "a").Label("app", "game")},
		"True":               {pod: is(corev1.ConditionTrue), want: label("yes")},
		"False":              {pod: is(corev1.ConditionFalse), want: label("no")},
		"Unknown":            {pod: is(corev1.ConditionUnknown)},
		"nonstandard status": {pod: is("Maybe")},
		"provider has set the condition": {pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", rest), want: mark.Marks{
			mark.Label("idle"): text("yes"), idle: {},
		}},
		"condition without status": {pod: is("").ManagedFields("seamark", "status", rest)},
		"condition of an agent, not yet set by the provider": {
			pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", whole),
			want: mark.Marks{
				mark.Label("idle"): text("yes"),
				idle:               {Condition: mark.Condition{Status: corev1.ConditionTrue, Message: "said"}},
			},
		},
	}
	marker, err := plan.Compile(builders.Marker("ns", "web").Probe(builders.Probe("p").Condition("game.io/idle").
		Label(v1alpha1.ProbeSucceeded, "idle", "yes").Label(v1alpha1.ProbeFailed, "idle", "no")).Build())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod.Build()
			probes := plan.Pod(pod, []*plan.Marker{marker}, plan.KubernetesDefaults()).Probes
			report := mark.Provided(pod, probes)
			owned, err := mark.Owned(pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, mark.Desired(probes, report, owned), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}
