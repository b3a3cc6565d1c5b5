// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/model"
)

// TestOneWritePerProcess checks that no write undoes the one before: a set that is created, scaled,
// updated by recreation and in place, and scaled again converges although every process crashes before
// or after its first write.
func TestOneWritePerProcess(t *testing.T) {
	changes := []func(*v1alpha1.CloneSetSpec){
		func(s *v1alpha1.CloneSetSpec) { s.Replicas = pointer(int32(5)) },
		func(s *v1alpha1.CloneSetSpec) {
			s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: "1"}}
		},
		func(s *v1alpha1.CloneSetSpec) { s.Template.Spec.Containers[0].Image = "app:2" },
		func(s *v1alpha1.CloneSetSpec) { s.Replicas = pointer(int32(2)) },
	}
	hook := &pub.LifecycleHook{LabelsHandler: map[string]string{modelHook: "true"}, MarkPodNotReady: true}
	for name, hooks := range map[string]*pub.Lifecycle{
		"no hooks": {}, "preDelete": {PreDelete: hook}, "inPlaceUpdate": {InPlaceUpdate: hook},
	} {
		t.Run(name, func(t *testing.T) {
			const events = 5000
			event, converged := 0, 0
			err := model.Run(1, model.Config{
				Planner: modelPlanner(false, false), Faults: &model.Faults{Crash: 1}, Chaos: events, HookLabel: modelHook,
				New: func(*rand.Rand) model.Object { return oneWriteSet(hooks) },
				Program: func(w *model.World) {
					if event++; event > events || converged > len(changes) || !isConverged(w.State()) {
						return
					}
					if converged < len(changes) {
						w.EditSet(func(o model.Object) { changes[converged](&asSet(o).Spec) })
					}
					converged++
				},
				Rest: atRest,
			})
			expect.Success(t, err)
			if converged <= len(changes) {
				t.Errorf("the set does not converge after change %d of %d", converged, len(changes))
			}
		})
	}
}

func oneWriteSet(hooks *pub.Lifecycle) *v1alpha1.CloneSet {
	set := &v1alpha1.CloneSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "CloneSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: model.Namespace, Generation: 1},
	}
	set.Spec = v1alpha1.CloneSetSpec{
		Replicas: pointer(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		Lifecycle:            hooks,
		UpdateStrategy: v1alpha1.CloneSetUpdateStrategy{
			Type: v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType, MaxUnavailable: pointer(intstr.FromInt32(1)),
		},
	}
	set.Spec.Template.Labels = map[string]string{"app": "web", modelHook: "true"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	return set
}

// isConverged reports whether the set has the pods of its spec, and its status describes them.
func isConverged(s *model.State) bool {
	set := asSet(s.Set)
	for _, pod := range s.Pods {
		if !planning.Ready(pod) || !planning.Active(pod) || lifecycle.State(pod) != pub.LifecycleStateNormal ||
			!revision.Is(pod, set.Status.UpdateRevision) {
			return false
		}
	}
	return len(s.Pods) == int(*set.Spec.Replicas) && set.Status.ObservedGeneration == set.Generation &&
		int(set.Status.UpdatedAvailableReplicas) == len(s.Pods) && int(set.Status.Replicas) == len(s.Pods)
}
