// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package setview_test

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

// TestState reads the state of a StatefulSet of three pods whose counts say that it is complete. One pod may be updated, and two
// have the update revision, unless a test says otherwise.
func TestState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status corev1.ConditionStatus
		reason string
		want   rollout.Phase
		change func(*v1beta1.StatefulSet)
	}{
		"no condition":    {want: rollout.Complete},
		"ready":           {corev1.ConditionTrue, "Complete", rollout.Complete, nil},
		"updating":        {corev1.ConditionFalse, "Updating", rollout.Progressing, nil},
		"guarded":         {corev1.ConditionFalse, "Guarded", rollout.Progressing, nil},
		"refused":         {corev1.ConditionFalse, "WritesRefused", rollout.Progressing, nil},
		"not planned":     {corev1.ConditionFalse, "PlanFailed", rollout.Progressing, nil},
		"paused":          {corev1.ConditionFalse, "Paused", rollout.Paused, nil},
		"stalled":         {corev1.ConditionFalse, "ProgressDeadlineExceeded", rollout.Stalled, nil},
		"not handled yet": {corev1.ConditionFalse, "Paused", rollout.NotObserved, func(set *v1beta1.StatefulSet) { set.Generation++ }},
		// Another controller has written the counts, and has left the condition.
		"pods were missing":       {corev1.ConditionFalse, "Creating", rollout.Complete, nil},
		"pods were not available": {corev1.ConditionFalse, "NotAvailable", rollout.Complete, nil},
		"pods were to be deleted": {corev1.ConditionFalse, "Deleting", rollout.Complete, nil},
		"another reason":          {corev1.ConditionFalse, "Other", rollout.Complete, nil},
		"all pods are updated": {corev1.ConditionFalse, "Updating", rollout.Complete, func(set *v1beta1.StatefulSet) {
			set.Status.UpdatedReplicas, set.Status.UpdatedAvailableReplicas = 3, 3
		}},
		"no pod may be updated": {corev1.ConditionFalse, "Paused", rollout.Complete, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(3))
		}},
		"pods are updated on deletion": {corev1.ConditionFalse, "Updating", rollout.Complete, func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			set.Spec.Replicas = new(int32(3))
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
			set.Status = v1beta1.StatefulSetStatus{
				ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 2, UpdatedAvailableReplicas: 2,
			}
			if test.status != "" {
				set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: v1alpha1.ConditionReady, Status: test.status, Reason: test.reason}}
			}
			if test.change != nil {
				test.change(set)
			}
			view, _ := setview.Of(set)
			expect.Equal(t, "phase", test.want, view.State().Phase)
		})
	}
}
