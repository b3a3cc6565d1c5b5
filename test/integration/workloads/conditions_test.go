// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
)

// TestConditionsOfARollout follows the conditions of a set by which clients wait for it.
func TestConditionsOfARollout(t *testing.T) {
	w := newWorld(t)
	set := w.cloneSet("web", 10, func(set *v1alpha1.CloneSet) {
		set.Spec.UpdateStrategy.MaxUnavailable, set.Spec.MinReadySeconds = new(intstr.FromInt32(5)), 2
	})
	condition := func(kind string) *v1alpha1.CloneSetCondition {
		for i := range set.Status.Conditions {
			if c := &set.Status.Conditions[i]; string(c.Type) == kind {
				return c
			}
		}
		return nil
	}
	reaches := func(what string, ready corev1.ConditionStatus, reconciling bool) {
		w.Helper()
		w.Shows(set, what, func() error {
			c := condition("Ready")
			done := c != nil && c.Status == ready && (condition("Reconciling") != nil) == reconciling && set.Status.ObservedGeneration == set.Generation
			return await.ErrorIf(!done, "status %+v", set.Status)
		})
	}
	reaches("the new set is ready", "True", false)
	since := condition("Ready").LastTransitionTime
	w.Edit(set, func() { set.Spec.Template.Spec.Containers[0].Image = "image:2" })
	reaches("the set is being updated", "False", true)
	reaches("the set is updated", "True", false)
	if got := condition("Ready"); got.LastTransitionTime.Equal(&since) || got.Message != "10 of 10 pods are updated and available" {
		t.Errorf("condition %+v, want another one than before the update", got)
	}
}
