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
		pod   *corev1.Pod
		want  mark.Marks
		fails bool
	}{
		"no managed fields": {pod: marked().Build()},
		"other managers": {
			pod: marked().ManagedFields("kubelet", "status", ownedSet).ManagedFields("seamark", "", ownedSet).Build(),
		},
		"pod values, without removed keys": {
			pod: marked().ManagedFields("seamark", "status", ownedSet).Build(),
			want: mark.Marks{
				mark.Label("gameserver-idle"):                                 text("true"),
				mark.Annotation("controller.kubernetes.io/pod-deletion-cost"): text("-10"),
				mark.ConditionType("game.io/idle"): {Condition: mark.Condition{
					Status: corev1.ConditionTrue, Message: "idle", LastProbeTime: probed, LastTransitionTime: changed,
				}},
			},
		},
		"invalid fields": {
			pod:   marked().ManagedFields("seamark", "status", `{"f:metadata":[]}`).Build(),
			fails: true,
		},
		"invalid element": {
			pod:   marked().ManagedFields("seamark", "status", `{"f:status":{"f:conditions":{"k:{":{}}}}`).Build(),
			fails: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mark.Owned(tc.pod)
			if fails := err != nil; fails != tc.fails {
				t.Fatalf("error %v, want an error: %t", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owned (-want +got):\n%s", diff)
			}
		})
	}
}
