// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

const ownedSet = `{
	"f:metadata":{
		"f:annotations":{"f:controller.kubernetes.io/pod-deletion-cost":{}},
		"f:labels":{"f:gameserver-idle":{},"f:gone":{}}},
	"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{
		".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}}`

func TestOwned(t *testing.T) {
	marked := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").
			Label("app", "game").Label("gameserver-idle", "true").
			Annotation("controller.kubernetes.io/pod-deletion-cost", "-10").Annotation("foreign", "1").
			Condition(corev1.PodCondition{
				Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle",
				LastProbeTime: probed, LastTransitionTime: changed,
			})
	}
	cases := map[string]struct {
		pod     *corev1.Pod
		want    mark.Marks
		refused bool
	}{
		"no managed fields": {pod: marked().Build()},
		"of others": {
			pod: marked().ManagedFields("kubelet", "status", ownedSet).ManagedFields("seamark", "", ownedSet).Build(),
		},
		"ours, with the pod's values and without what is gone": {
			pod: marked().ManagedFields("seamark", "status", ownedSet).Build(),
			want: mark.Marks{
				Labels:      map[string]string{"gameserver-idle": "true"},
				Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-10"},
				Conditions: map[string]mark.Condition{"game.io/idle": {
					Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle",
					LastProbeTime: probed, LastTransitionTime: changed,
				}},
			},
		},
		"a broken set": {
			pod:     marked().ManagedFields("seamark", "status", `{"f:metadata":[]}`).Build(),
			refused: true,
		},
		"a broken element": {
			pod:     marked().ManagedFields("seamark", "status", `{"f:status":{"f:conditions":{"k:{":{}}}}`).Build(),
			refused: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mark.Owned(tc.pod)
			if refused := err != nil; refused != tc.refused {
				t.Fatalf("error %v, refused wanted: %t", err, tc.refused)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("owned (-want +got):\n%s", diff)
			}
		})
	}
}
