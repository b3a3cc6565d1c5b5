// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package update_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// TestCondition changes what a pod cannot get in place, and then something that it can.
func TestCondition(t *testing.T) {
	w := newWorld(t, 1)
	pod := w.pods[0]
	expect := func(when, status, message string) {
		t.Helper()
		for range 4 {
			w.now = w.now.Add(time.Second)
			w.apply(w.plan())
			w.run(pod)
		}
		if out := w.plan(); !out.Empty() {
			t.Errorf("%s: the steps do not end: %+v", when, out)
		}
		c := planning.Condition(pod, v1alpha1.PodSidecarSetUpgradable)
		if c == nil {
			c = &corev1.PodCondition{}
		}
		if string(c.Status) != status || c.Message != message {
			t.Errorf("%s: condition %+v, want %s and %s", when, c, status, message)
		}
	}
	environment := func(variables ...corev1.EnvVar) func(*v1alpha1.SidecarSetSpec) {
		return func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Env = variables }
	}
	expect("new", "", "")
	w.accept(func(s *v1alpha1.SidecarSetSpec) { s.Containers[0].Image = "agent:2" })
	expect("updated", "True", `{"logs":true}`)
	w.accept(environment(corev1.EnvVar{Name: "a"}))
	expect("other variables", "False", `{"logs":false}`)
	w.accept(environment())
	expect("as before", "True", `{"logs":true}`)
	setCondition(pod, corev1.PodCondition{Type: v1alpha1.PodSidecarSetUpgradable, Status: "False", Message: `{"logs":true,"proxy":false}`})
	w.accept(environment(corev1.EnvVar{Name: "b"}))
	expect("two sets", "False", `{"logs":false,"proxy":false}`)
	w.accept(environment())
	expect("one of two sets", "False", `{"logs":true,"proxy":false}`)
	w.accept(environment(corev1.EnvVar{Name: "c"}))
	for _, message := range []string{"null", "unknown", `{"logs":"a"}`} {
		setCondition(pod, corev1.PodCondition{Type: v1alpha1.PodSidecarSetUpgradable, Status: "False", Message: message})
		expect(message, "False", `{"logs":false}`)
	}
}
