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

// TestState reads the state of a StatefulSet of three pods whose counts say that it is complete: two have the update revision, and
// the partition keeps two.
func TestState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status   corev1.ConditionStatus
		reason   string
		observed int64
		want     rollout.Phase
	}{
		"no condition":    {"", "", 2, rollout.Complete},
		"ready":           {corev1.ConditionTrue, "Complete", 2, rollout.Complete},
		"updating":        {corev1.ConditionFalse, "Updating", 2, rollout.Progressing},
		"refused":         {corev1.ConditionFalse, "WritesRefused", 2, rollout.Progressing},
		"paused":          {corev1.ConditionFalse, "Paused", 2, rollout.Paused},
		"stalled":         {corev1.ConditionFalse, "ProgressDeadlineExceeded", 2, rollout.Stalled},
		"not handled yet": {corev1.ConditionFalse, "Paused", 1, rollout.NotObserved},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			set.Spec.Replicas = new(int32(3))
			set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
			set.Status = v1beta1.StatefulSetStatus{
				ObservedGeneration: test.observed, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: 2, UpdatedAvailableReplicas: 2,
			}
			if test.status != "" {
				set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: v1alpha1.ConditionReady, Status: test.status, Reason: test.reason}}
			}
			view, _ := setview.Of(set)
			expect.Equal(t, "phase", test.want, view.State().Phase)
		})
	}
}
