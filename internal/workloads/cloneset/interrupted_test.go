// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// The program ended after it made the pod not ready, and before it changed the image: the next step
// continues with the image. If it made the pod ready first, a program that ends after every write
// would never finish.
func TestInterruptedUpdateContinues(t *testing.T) {
	interrupted := func(f *fixture) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			f.isOld(p)
			workload.AddGate(&p.Spec, pub.InPlaceUpdateReady)
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: pub.InPlaceUpdateReady, Status: corev1.ConditionFalse,
			})
		}
	}
	for name, test := range map[string]struct {
		paused     bool
		image      string
		conditions int
	}{
		"continues": {false, "app:2", 0},
		"paused":    {true, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 2, func(set *v1alpha1.CloneSet) {
				set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
				set.Spec.UpdateStrategy.Paused = test.paused
			})
			f.pod("a", f.isOld).pod("b", interrupted(f))
			out := f.plan(t)
			if len(out.Patches) != 1 || out.Patches[0].Pod.Name != "web-b" {
				t.Fatalf("patches %v, want one of web-b", out.Patches)
			}
			patch := out.Patches[0]
			if patch.Images["main"] != test.image || len(patch.Conditions) != test.conditions {
				t.Errorf("images %v and conditions %v, want image %q and %d conditions",
					patch.Images, patch.Conditions, test.image, test.conditions)
			}
		})
	}
}
