// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/test/builders"
)

// FuzzOwned reads any managed fields. Whatever they say, a mark that is read stands on the
// pod with that very value, and none is read from another manager's entry.
func FuzzOwned(f *testing.F) {
	for _, seed := range []string{
		`{"f:metadata":{"f:labels":{"f:idle":{}},"f:annotations":{"f:cost":{}}},"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{"f:status":{}}}}}`,
		`{"f:metadata":{"f:labels":{".":{},"f:gone":{},"idle":{}}}}`,
		`{"f:status":{"f:conditions":{"k:{}":{},"k:[1]":{},"v:1":{},"k:":{}}}}`,
		`{"f:metadata":[]}`, `{`, ``, `null`, `{"f:metadata":{"f:labels":null}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, fields string, mine bool) {
		manager := v1alpha1.FieldManager
		if !mine {
			manager = "kubectl"
		}
		pod := builders.Pod("ns", "pod").Label("idle", "true").Annotation("cost", "5").
			Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
			ManagedFields(manager, "status", fields).Build()
		owned, err := mark.Owned(pod)
		if !mine && (err != nil || len(owned.Keys()) > 0) {
			t.Errorf("another manager's fields gave %v, %v", owned, err)
		}
		for key, value := range owned.Labels {
			if got, found := pod.Labels[key]; !found || got != value {
				t.Errorf("the label %q is read as %q and is %q, %t", key, value, got, found)
			}
		}
		for key, value := range owned.Annotations {
			if got, found := pod.Annotations[key]; !found || got != value {
				t.Errorf("the annotation %q is read as %q and is %q, %t", key, value, got, found)
			}
		}
		for _, c := range owned.Conditions {
			if c.Type != "game.io/idle" && c.Type != string(corev1.PodInitialized) {
				t.Errorf("the condition %q is not on the pod", c.Type)
			}
		}
	})
}
