// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestReplace(t *testing.T) {
	set := func(status corev1.ConditionStatus) corev1.PodCondition {
		value := condition(status, "m").Condition
		return corev1.PodCondition{
			Type: "c", Status: value.Status, Message: value.Message,
			LastProbeTime: value.LastProbeTime, LastTransitionTime: value.LastTransitionTime,
		}
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	pod := func() *builders.PodBuilder { return builders.Pod("ns", "a") }
	all := mark.Marks{
		mark.Label("a"): text("1"), mark.Annotation("b"): text("2"), mark.ConditionType("c"): condition("True", "m"),
	}
	cases := map[string]struct {
		before         *builders.PodBuilder
		owned, desired mark.Marks
		want           *builders.PodBuilder
	}{
		"sets new marks": {
			before:  pod().Label("app", "x").Condition(ready),
			desired: all,
			want:    pod().Label("app", "x").Label("a", "1").Annotation("b", "2").Condition(ready).Condition(set("True")),
		},
		"removes only marks that are no longer desired": {
			before: pod().Label("app", "x").Label("a", "1").Annotation("b", "2").Annotation("note", "y").Condition(set("True")).Condition(ready),
			owned:  all,
			want:   pod().Label("app", "x").Annotation("note", "y").Condition(ready),
		},
		"keeps the order of conditions": {
			before:  pod().Condition(set("True")).Condition(ready),
			owned:   mark.Marks{mark.ConditionType("c"): condition("True", "m")},
			desired: mark.Marks{mark.ConditionType("c"): condition("False", "m")},
			want:    pod().Condition(set("False")).Condition(ready),
		},
		"removes a taken-over key": {
			before: pod().Label("app", "marked"),
			owned:  mark.Marks{mark.Label("app"): text("marked")},
			want:   pod(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.before.Build()
			mark.Replace(got, tc.owned, tc.desired)
			if diff := cmp.Diff(tc.want.Build(), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("pod (-want +got):\n%s", diff)
			}
		})
	}
}
