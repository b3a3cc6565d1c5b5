// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/program/earliest"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// JobPlan is what to do for a job: write pods, then the status, whose type is S.
type JobPlan[S any] struct {
	// Actions are the writes of pods. Events are recorded at once.
	Actions
	// Remove is whether to delete the job.
	Remove bool
	// Status is the status, and Urgent is whether it must be written at once.
	Status S
	Urgent bool
	// Next is when to plan again without an event, zero for never.
	Next time.Time
}

// Wake plans again at the time, or earlier.
func (p *JobPlan[S]) Wake(at time.Time) { p.Next = earliest.Time(p.Next, at) }

// Reached reports whether it is the time, which is so many seconds after another one. If it is not, it plans again then.
func (p *JobPlan[S]) Reached(now, since time.Time, seconds int64) bool {
	at := since.Add(time.Duration(min(seconds, int64(math.MaxInt64/time.Second))) * time.Second)
	if now.Before(at) {
		p.Wake(at)
		return false
	}
	return true
}

// PutCondition sets a condition of an object with the generation that has changed at the time. It reports whether it
// differs.
func PutCondition(conditions *[]metav1.Condition, condition metav1.Condition, generation int64, now time.Time) bool {
	condition.ObservedGeneration, condition.LastTransitionTime = generation, metav1.NewTime(now.Truncate(time.Second))
	return meta.SetStatusCondition(conditions, condition)
}

// PutGuarded sets the condition PodsGuarded: True while guards protect pods, and False afterwards if it was.
func PutGuarded(conditions *[]metav1.Condition, guarded guard.Held, generation int64, now time.Time) {
	condition := metav1.Condition{Type: PodsGuarded, Status: metav1.ConditionTrue, Reason: "Guarded", Message: guarded.Message()}
	if condition.Message == "" {
		if meta.FindStatusCondition(*conditions, PodsGuarded) == nil {
			return
		}
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Recovered", "No guard protects a pod from the next step."
	}
	PutCondition(conditions, condition, generation, now)
}

// Parallelism returns how many of the nodes may run a pod at the same time. A CRD refuses what is not a number.
func Parallelism(parallelism intstr.IntOrString, nodes int) int {
	number, err := intstr.GetScaledValueFromIntOrPercent(&parallelism, nodes, true)
	if err != nil {
		return 0
	}
	return max(number, 0)
}

// NodeHas reports whether a condition of a node is True.
func NodeHas(node *corev1.Node, condition corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
