// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/internal/workloads/setview"
	"github.com/seamark-dev/seamark/test/expect"
)

func cloneSet(namespace string) *v1alpha1.CloneSet {
	return &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web", Generation: 2, Annotations: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: v1alpha1.CloneSetSpec{Replicas: new(int32(3)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}}},
		Status: v1alpha1.CloneSetStatus{
			ObservedGeneration: 2, UpdateRevision: "web-1", Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1,
			UpdatedAvailableReplicas: 1,
			ExpectedUpdatedReplicas:  3,
		},
	}
}

// canarySet returns a StatefulSet that was taken back after a canary, while the update is paused.
func canarySet(namespace string) *v1beta1.StatefulSet {
	return &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec: v1beta1.StatefulSetSpec{Replicas: new(int32(3)), UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
			RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2)), Paused: true},
		}},
		Status: v1beta1.StatefulSetStatus{
			Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 2, UpdatedAvailableReplicas: 2,
			Conditions: []appsv1.StatefulSetCondition{{Type: v1alpha1.ConditionReady, Status: corev1.ConditionFalse, Reason: "Paused"}},
		},
	}
}

// TestTrimSet checks that what is removed from a set does not change its rollout.
func TestTrimSet(t *testing.T) {
	whole, trimmed := cloneSet("shop"), cloneSet("shop")
	trimSet(trimmed)
	before, _ := setview.Of(whole)
	after, _ := setview.Of(trimmed)
	expect.Equal(t, "progress", before.Progress, after.Progress)
	whole.Annotations, whole.ManagedFields, whole.Spec.Template = nil, nil, corev1.PodTemplateSpec{}
	expect.Equal(t, "trimmed set", whole, trimmed)
	canary := canarySet("shop")
	trimSet(canary)
	after, _ = setview.Of(canary)
	expect.Equal(t, "phase", rollout.Paused, after.State().Phase)
	for _, kind := range SetKinds() {
		if _, ok := setview.Of(kind.New()); !ok {
			t.Errorf("%s has no rollout", kind.Kind)
		}
	}
}
