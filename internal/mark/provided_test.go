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
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
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
	label := func(value string) map[string]string { return map[string]string{"idle": value} }
	cases := map[string]struct {
		pod  *builders.PodBuilder
		want mark.Marks
	}{
		"no condition yet":               {pod: builders.Pod("ns", "a").Label("app", "game")},
		"True":                           {pod: is(corev1.ConditionTrue), want: mark.Marks{Labels: label("yes")}},
		"False":                          {pod: is(corev1.ConditionFalse), want: mark.Marks{Labels: label("no")}},
		"Unknown":                        {pod: is(corev1.ConditionUnknown)},
		"a status of the provider's own": {pod: is("Maybe")},
		"the provider has set the condition": {pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", rest), want: mark.Marks{
			Labels: label("yes"), Conditions: map[string]mark.Condition{"game.io/idle": {Type: "game.io/idle"}},
		}},
		"a condition without a status": {pod: is("").ManagedFields("seamark", "status", rest)},
		"an agent's condition that the provider has yet to set": {
			pod: is(corev1.ConditionTrue).ManagedFields("seamark", "status", whole),
			want: mark.Marks{
				Labels: label("yes"),
				Conditions: map[string]mark.Condition{"game.io/idle": {
					Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "said",
				}},
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
