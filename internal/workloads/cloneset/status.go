// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Types and reasons of conditions besides those of the API.
const (
	// ConditionPodsToDeleteNotFound is True while podsToDelete contains names without a pod.
	ConditionPodsToDeleteNotFound v1alpha1.CloneSetConditionType = "PodsToDeleteNotFound"
	// ConditionPodsNotAdopted is True while the selector matches active pods without a controller that
	// were never pods of the set.
	ConditionPodsNotAdopted v1alpha1.CloneSetConditionType = "PodsNotAdopted"

	reasonWriteFailed = "WriteFailed"
	reasonPlanFailed  = "PlanFailed"
	reasonRecovered   = "Recovered"
	reasonInPlace     = "InPlaceUpdateImpossible"
	reasonNotFound    = "PodNotFound"
	reasonForeign     = "NotPodsOfTheSet"
	reasonMarked      = "MarkerWritesSelectorKey"
)

// status counts the pods of the input.
func (p *planner) status() {
	s := &p.out.Status
	s.ObservedGeneration = p.Set.Generation
	s.LabelSelector = p.selector.String()
	s.UpdateRevision = p.revisions.Update.Name
	s.CurrentRevision = p.revisions.Current.Name
	collisions := p.revisions.CollisionCount
	s.CollisionCount = &collisions
	s.PodSerial = p.watermark()
	p.countPods(s)
	if s.UpdatedReplicas == s.Replicas && p.partition == 0 {
		s.CurrentRevision = s.UpdateRevision
	}
	s.ExpectedUpdatedReplicas = clamp(p.replicas - p.partition)
	if s.CurrentRevision == s.UpdateRevision {
		s.ExpectedUpdatedReplicas = clamp(p.replicas)
	}
	p.conditions(s)
	p.progress(s)
}

func (p *planner) countPods(s *v1alpha1.CloneSetStatus) {
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas = clamp(len(p.members)), 0, 0
	s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = 0, 0, 0
	for _, m := range p.members {
		ready := workload.Ready(m.pod)
		available, _ := workload.Available(m.pod, p.minReady(), p.Now)
		available = available && lifecycle.State(m.pod) == pub.LifecycleStateNormal
		updated := revision.Is(m.pod, s.UpdateRevision)
		s.ReadyReplicas += int32(btoi(ready))                           //nolint:gosec // 0 or 1.
		s.AvailableReplicas += int32(btoi(available))                   //nolint:gosec // 0 or 1.
		s.UpdatedReplicas += int32(btoi(updated))                       //nolint:gosec // 0 or 1.
		s.UpdatedReadyReplicas += int32(btoi(updated && ready))         //nolint:gosec // 0 or 1.
		s.UpdatedAvailableReplicas += int32(btoi(updated && available)) //nolint:gosec // 0 or 1.
	}
}

// conditions sets the conditions that follow from the input. Those about failed writes are set by
// Failed.
func (p *planner) conditions(s *v1alpha1.CloneSetStatus) {
	set(s, v1alpha1.CloneSetConditionFailedUpdate, reasonInPlace, p.stuck, p.Now)
	set(s, v1alpha1.CloneSetConditionFailedScale, reasonPlanFailed, "", p.Now)

	exists := make(map[string]bool, len(p.Pods))
	var missing []string
	if names := p.Set.Spec.ScaleStrategy.PodsToDelete; len(names) > 0 {
		for _, pod := range p.Pods {
			exists[pod.Name] = p.mine(pod)
		}
		for _, name := range names {
			if !exists[name] {
				missing = append(missing, name)
			}
		}
	}
	message := ""
	if len(missing) > 0 {
		slices.Sort(missing)
		message = fmt.Sprintf("spec.scaleStrategy.podsToDelete: the set has no pods with these names: %s.", workload.List(missing))
	}
	set(s, ConditionPodsToDeleteNotFound, reasonNotFound, message, p.Now)

	message = ""
	if len(p.strangers) > 0 {
		slices.Sort(p.strangers)
		message = fmt.Sprintf("spec.selector matches pods without a controller that were never pods of the set. "+
			"They are neither counted nor changed: %s.", workload.List(p.strangers))
	}
	set(s, ConditionPodsNotAdopted, reasonForeign, message, p.Now)

	message, next := workload.Overdue(p.reserving(), p.Now)
	p.after(next)
	set(s, workload.DeletionOverdue, workload.StillTerminating, message, p.Now)
	if c := find(&p.Set.Status, workload.DeletionOverdue); message != "" && (c == nil || c.Status != corev1.ConditionTrue) {
		p.out.StatusEvents = append(p.out.StatusEvents, workload.Event{
			Type: corev1.EventTypeWarning, Reason: workload.DeletionOverdue, Sentence: message,
		})
	}

	message = ""
	if keys := workload.MarkedKeys(p.Set.Spec.Selector, p.Markers); len(keys) > 0 {
		message = fmt.Sprintf("PodProbeMarkers write label keys of spec.selector: %s. "+
			"The set releases a pod when its label changes.", workload.List(keys))
	}
	set(s, workload.SelectorMarked, reasonMarked, message, p.Now)
}

// Unplanned returns the status of a set for which Plan returned the error: FailedScale is True, because
// pods are neither created nor deleted. The next step that is planned sets it to False. The observed
// generation does not change: the counts are not those of the current spec.
func Unplanned(object *v1alpha1.CloneSet, err error, now time.Time) v1alpha1.CloneSetStatus {
	status := *object.Status.DeepCopy()
	set(&status, v1alpha1.CloneSetConditionFailedScale, reasonPlanFailed, err.Error(), now)
	return status
}

// Failed sets the conditions FailedScale and FailedUpdate of the status to the failed writes of the
// step: True with the first error of the kind, or False if the condition was True because of a write
// and no write of the kind failed. It is called after the writes of every step. A conflict is not a
// failure: the step was decided from an old cache, and the next one is not.
func Failed(status *v1alpha1.CloneSetStatus, failures []workload.Failure, now time.Time) {
	set(status, v1alpha1.CloneSetConditionFailedScale, reasonWriteFailed, first(failures, false), now)
	set(status, v1alpha1.CloneSetConditionFailedUpdate, reasonWriteFailed, first(failures, true), now)
}

// first returns the message for the first failure of the kind, empty if there is none.
func first(failures []workload.Failure, update bool) string {
	i := slices.IndexFunc(failures, func(f workload.Failure) bool { return f.Update == update })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s: %v", failures[i].Object, failures[i].Err)
}

// set sets the condition to True with the reason and the message. If there is no message, it sets the
// condition to False if it was True for this reason.
func set(
	status *v1alpha1.CloneSetStatus, kind v1alpha1.CloneSetConditionType, reason, message string, now time.Time,
) {
	wanted := v1alpha1.CloneSetCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	if message == "" {
		c := find(status, kind)
		if c == nil || c.Status != corev1.ConditionTrue || c.Reason != reason {
			return
		}
		wanted.Status, wanted.Reason = corev1.ConditionFalse, reasonRecovered
	}
	put(status, wanted, now)
}

// find returns the condition, nil if there is none.
func find(status *v1alpha1.CloneSetStatus, kind v1alpha1.CloneSetConditionType) *v1alpha1.CloneSetCondition {
	i := slices.IndexFunc(status.Conditions, func(c v1alpha1.CloneSetCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// put sets the condition. Its times are those of the last change of its status, and of the last change
// of any other field.
func put(status *v1alpha1.CloneSetStatus, wanted v1alpha1.CloneSetCondition, now time.Time) {
	wanted.LastUpdateTime, wanted.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
	old := find(status, wanted.Type)
	switch {
	case old == nil:
		status.Conditions = append(status.Conditions, wanted)
		return
	case old.Status == wanted.Status && old.Reason == wanted.Reason && old.Message == wanted.Message:
		return
	case old.Status == wanted.Status:
		wanted.LastTransitionTime = old.LastTransitionTime
	}
	*old = wanted
}

// events adds one event per kind of write, however many pods it concerns.
func (p *planner) events() {
	created := make([]string, len(p.out.Creates))
	for i, pod := range p.out.Creates {
		created[i] = pod.Name
	}
	deleted := make([]string, len(p.out.Deletes))
	for i := range p.out.Deletes {
		deleted[i] = p.out.Deletes[i].Pod.Name
	}
	slices.Sort(deleted)
	for _, e := range []workload.Event{
		workload.PodEvent("SuccessfulCreate", "Created pod %s.", "Created %d pods: %s.", created...),
		workload.PodEvent("SuccessfulDelete", "Deleted pod %s.", "Deleted %d pods: %s.", deleted...),
	} {
		if len(e.Pods) > 0 {
			p.out.Events = append(p.out.Events, e)
		}
	}
	c := find(&p.Set.Status, v1alpha1.CloneSetConditionFailedUpdate)
	if p.stuck != "" && (c == nil || c.Status != corev1.ConditionTrue || c.Message != p.stuck) {
		p.out.Events = append(p.out.Events, workload.Event{
			Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: p.stuck,
		})
	}
}
