// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
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
			expect.Equal(t, "owned", tc.want, got, cmpopts.EquateEmpty())
		})
	}
}

// FuzzOwned parses arbitrary managedFields. Every owned mark must be on the pod with the same
// value, and another manager's entry must not contribute any.
func FuzzOwned(f *testing.F) {
	for _, seed := range []string{
		`{"f:metadata":{"f:labels":{"f:idle":{}},"f:annotations":{"f:cost":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{"f:status":{}}}}}`,
		`{"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{"f:message":{},"f:lastProbeTime":{},"f:lastTransitionTime":{}}}}}`,
		`{"f:metadata":{"f:labels":{".":{},"f:gone":{},"idle":{}}}}`,
		`{"f:status":{"f:conditions":{"k:{}":{},"k:[1]":{},"v:1":{},"k:":{}}}}`,
		`{"f:metadata":[]}`, `{`, ``, `null`, `{"f:metadata":{"f:labels":null}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	// All seeds share the parser, as the pods of a cache do.
	parser := mark.NewParser()
	f.Fuzz(func(t *testing.T, fields string, mine bool) {
		manager := v1alpha1.FieldManager
		if !mine {
			manager = "kubectl"
		}
		pod := builders.Pod("ns", "pod").Label("idle", "true").Annotation("cost", "5").
			Condition(corev1.PodCondition{
				Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle",
				LastProbeTime: metav1.Unix(1_700_000_000, 0), LastTransitionTime: metav1.Unix(1_600_000_000, 0),
			}).
			ManagedFields(manager, "status", fields).Build()
		owned, err := mark.Owned(pod)
		for range 2 {
			remembered, errRemembered := parser.Owned(pod)
			if diff := cmp.Diff(owned, remembered); diff != "" || (err == nil) != (errRemembered == nil) {
				t.Errorf("remembered marks (-parsed +remembered), errors %v and %v:\n%s", err, errRemembered, diff)
			}
		}
		if !mine && (err != nil || len(owned) > 0) {
			t.Errorf("owned by another manager's entry: %v, error %v", owned, err)
		}
		for key, value := range owned {
			if key.Kind == mark.KindCondition {
				checkOwnedCondition(t, pod, key.Name, value)
				continue
			}
			on, found := map[mark.Key]string{mark.Label("idle"): "true", mark.Annotation("cost"): "5"}[key]
			if !found || value != (mark.Value{Text: on}) {
				t.Errorf("%s is owned as %v, and is %q on the pod (found %t)", key, value, on, found)
			}
		}
	})
}

// checkOwnedCondition checks that the pod has the condition, with the owned value of every
// field that is not empty.
func checkOwnedCondition(t *testing.T, pod *corev1.Pod, name string, value mark.Value) {
	t.Helper()
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return string(c.Type) == name })
	if i < 0 {
		t.Errorf("condition %s is owned, but the pod does not have it", name)
		return
	}
	on, c := pod.Status.Conditions[i], value.Condition
	if value.Text != "" || c.Status != "" && c.Status != on.Status || c.Message != "" && c.Message != on.Message ||
		!c.LastProbeTime.IsZero() && c.LastProbeTime != on.LastProbeTime ||
		!c.LastTransitionTime.IsZero() && c.LastTransitionTime != on.LastTransitionTime {
		t.Errorf("condition %s is owned as %v, and is %v on the pod", name, value, on)
	}
}
