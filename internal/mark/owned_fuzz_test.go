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

// FuzzOwned parses arbitrary managedFields. Every owned mark must be on the pod with the same
// value, and another manager's entry must not contribute any.
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
		if !mine && (err != nil || len(owned) > 0) {
			t.Errorf("owned by another manager's entry: %v, error %v", owned, err)
		}
		for key, value := range owned {
			on, found := map[mark.Key]string{
				mark.Label("idle"): "true", mark.Annotation("cost"): "5",
				mark.ConditionType("game.io/idle"): "", mark.ConditionType(string(corev1.PodInitialized)): "",
			}[key]
			if !found || value.Text != on {
				t.Errorf("%s is owned as %q, and is %q on the pod (found %t)", key, value.Text, on, found)
			}
		}
	})
}
