// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// writeFailed is the reason of the conditions of failed writes.
	writeFailed = "WriteFailed"
	// planFailed is the reason of FailedCreatePod if no step can be planned.
	planFailed = "PlanFailed"
)

// Unplanned returns the status of a set for which Plan returned the error: FailedCreatePod is True,
// because pods are neither created nor deleted. The next step that is planned sets it to False. The
// observed generation does not change: the counts are not those of the current spec.
func Unplanned(set *appsv1beta1.StatefulSet, err error, now time.Time) appsv1beta1.StatefulSetStatus {
	status := *set.Status.DeepCopy()
	setCondition(&status, appsv1.StatefulSetCondition{
		Type: appsv1beta1.FailedCreatePod, Status: corev1.ConditionTrue, Reason: planFailed, Message: err.Error(),
	}, now)
	return status
}

// Failed returns the status with the conditions FailedCreatePod and FailedUpdatePod of the writes of
// the step that failed: True with the first error of the kind. They become False after a step without
// failed writes. The status is that of Plan. It is called after the writes of every step.
func Failed(
	_ *appsv1beta1.StatefulSet, status appsv1beta1.StatefulSetStatus, failures []workload.Failure, now time.Time,
) appsv1beta1.StatefulSetStatus {
	status.Conditions = slices.Clone(status.Conditions)
	for _, update := range []bool{false, true} {
		kind := appsv1beta1.FailedCreatePod
		if update {
			kind = appsv1beta1.FailedUpdatePod
		}
		if failure := first(failures, update); failure != nil {
			setCondition(&status, appsv1.StatefulSetCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: writeFailed,
				Message: fmt.Sprintf("%s: %v", failure.Object, failure.Err),
			}, now)
		} else if len(failures) == 0 {
			clearCondition(&status, kind, writeFailed, now)
		}
	}
	return status
}

// first returns the first failure of the kind, nil if there is none.
func first(failures []workload.Failure, update bool) *workload.Failure {
	i := slices.IndexFunc(failures, func(f workload.Failure) bool { return f.Update == update })
	if i < 0 {
		return nil
	}
	return &failures[i]
}

// setCondition sets the condition. The transition time changes with the status of the condition only.
func setCondition(status *appsv1beta1.StatefulSetStatus, condition appsv1.StatefulSetCondition, now time.Time) {
	condition.LastTransitionTime = metav1.NewTime(now)
	i := conditionIndex(status, condition.Type)
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if old := status.Conditions[i]; old.Status == condition.Status {
		condition.LastTransitionTime = old.LastTransitionTime
	}
	status.Conditions[i] = condition
}

// clearCondition sets a condition to False if it is True for the reason.
func clearCondition(
	status *appsv1beta1.StatefulSetStatus, kind appsv1.StatefulSetConditionType, reason string, now time.Time,
) {
	i := conditionIndex(status, kind)
	if i < 0 || status.Conditions[i].Status != corev1.ConditionTrue || status.Conditions[i].Reason != reason {
		return
	}
	setCondition(status, appsv1.StatefulSetCondition{
		Type: kind, Status: corev1.ConditionFalse, Reason: "Recovered",
	}, now)
}

func conditionIndex(status *appsv1beta1.StatefulSetStatus, kind appsv1.StatefulSetConditionType) int {
	return slices.IndexFunc(status.Conditions, func(c appsv1.StatefulSetCondition) bool { return c.Type == kind })
}
