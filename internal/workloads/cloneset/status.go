// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// Types and reasons of conditions besides those of the API.
const (
	// ConditionPodsToDeleteNotFound is True while podsToDelete contains names without a pod.
	ConditionPodsToDeleteNotFound = "PodsToDeleteNotFound"
	// ConditionPodsNotAdopted is True while the selector matches active pods without a controller that
	// were never pods of the set.
	ConditionPodsNotAdopted = "PodsNotAdopted"

	reasonInPlace  = "InPlaceUpdateImpossible"
	reasonNotFound = "PodNotFound"
	reasonForeign  = "NotPodsOfTheSet"
)

// status counts the pods of the input.
func (p *planner) status() {
	s := &p.out.Status
	s.ObservedGeneration = p.Set.Generation
	s.LabelSelector = p.Selector.String()
	s.UpdateRevision = p.History.Update.Name
	s.CurrentRevision = p.History.Current.Name
	collisions := p.History.CollisionCount
	s.CollisionCount = &collisions
	s.PodSerial = p.watermark()
	// A set that is scaled to zero keeps both revisions while a partition divides them.
	if s.UpdatedReplicas == s.Replicas && p.partition == 0 && (p.replicas > 0 || !partitioned(&p.Set.Spec)) {
		s.CurrentRevision = s.UpdateRevision
	}
	s.ExpectedUpdatedReplicas = planning.Number(p.replicas - p.partition)
	conditions := conditionsOf(s)
	p.conditions(&conditions)
	p.preDownload(s, &conditions)
	p.progress(s, &conditions)
	setConditions(s, conditions)
}

// partitioned reports whether the partition is not 0, also if it is 0 pods of few replicas.
func partitioned(spec *v1alpha1.CloneSetSpec) bool {
	partition := spec.UpdateStrategy.Partition
	return partition != nil && partition.String() != "0" && partition.String() != "0%"
}

// preDownload pulls images before an update in place.
func (p *planner) preDownload(s *v1alpha1.CloneSetStatus, conditions *planning.Conditions) {
	rollout := step.Rollout{UpdatedReady: int(s.UpdatedReadyReplicas), Total: p.replicas, AtOnce: p.maxUnavailable + p.maxSurge}
	kind := p.Set.Spec.UpdateStrategy.Type
	inPlace := kind == v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType || kind == v1alpha1.InPlaceOnlyCloneSetUpdateStrategyType
	if p.Input.PreDownload && inPlace {
		if pods := podsOf(p.updateOrder()); len(pods) > 0 {
			pods = pods[:min(max(p.toUpdate(), 1), len(pods))]
			rollout.Pods, rollout.Sample = p.toUpdate(), pods[0]
			rollout.Nodes = func() []string { return step.NodesOf(pods) }
		}
	}
	p.PreDownload(rollout, conditions)
}

// countPods counts the pods as they are, before the step changes members.
func (p *planner) countPods(s *v1alpha1.CloneSetStatus) {
	count := func(is func(*member) bool) (n int32) {
		for _, m := range p.members {
			if is(m) {
				n++
			}
		}
		return n
	}
	s.Replicas = planning.Number(len(p.members))
	s.ReadyReplicas = count(func(m *member) bool { return m.ready })
	s.AvailableReplicas = count(func(m *member) bool { return m.available })
	s.UpdatedReplicas = count(func(m *member) bool { return m.updated })
	s.UpdatedReadyReplicas = count(func(m *member) bool { return m.updated && m.ready })
	s.UpdatedAvailableReplicas = count(func(m *member) bool { return m.updated && m.available })
}

// conditions sets the conditions that follow from the input. Those about failed writes are set by
// planning.Descriptor.
func (p *planner) conditions(c *planning.Conditions) {
	c.Set(string(v1alpha1.CloneSetConditionFailedUpdate), reasonInPlace, p.stuck, p.Now)

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
		message = fmt.Sprintf("spec.scaleStrategy.podsToDelete: the set has no pods with these names: %s.", text.List(missing, text.MaxNames))
	}
	c.Set(ConditionPodsToDeleteNotFound, reasonNotFound, message, p.Now)

	message = ""
	if len(p.strangers) > 0 {
		slices.Sort(p.strangers)
		message = fmt.Sprintf("spec.selector matches pods without a controller that were never pods of the set. "+
			"They are neither counted nor changed: %s.", text.List(p.strangers, text.MaxNames))
	}
	c.Set(ConditionPodsNotAdopted, reasonForeign, message, p.Now)
	p.SetConditions(c, conditionsOf(&p.Set.Status), p.reserving())
}

// conditionsOf and setConditions convert the conditions of a status.
func conditionsOf(status *v1alpha1.CloneSetStatus) planning.Conditions {
	return planning.ConvertConditions(status.Conditions, func(c v1alpha1.CloneSetCondition) planning.SetCondition {
		return planning.SetCondition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, Updated: c.LastUpdateTime, Transitioned: c.LastTransitionTime,
		}
	})
}

func setConditions(status *v1alpha1.CloneSetStatus, conditions planning.Conditions) {
	status.Conditions = planning.ConvertConditions(conditions, func(c planning.SetCondition) v1alpha1.CloneSetCondition {
		return v1alpha1.CloneSetCondition{Type: v1alpha1.CloneSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastUpdateTime: c.Updated, LastTransitionTime: c.Transitioned}
	})
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
	for _, e := range []planning.Event{
		planning.PodEvent("SuccessfulCreate", "Created pod %s.", "Created %d pods: %s.", created...),
		planning.PodEvent("SuccessfulDelete", "Deleted pod %s.", "Deleted %d pods: %s.", deleted...),
	} {
		if len(e.Pods) > 0 {
			p.out.Events = append(p.out.Events, e)
		}
	}
	for i := range p.out.Events {
		slices.Sort(p.out.Events[i].Pods)
	}
	before := conditionsOf(&p.Set.Status)
	failed := string(v1alpha1.CloneSetConditionFailedUpdate)
	if p.stuck != "" && (!before.True(failed) || before.Find(failed).Message != p.stuck) {
		p.out.Events = append(p.out.Events, planning.Event{
			Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: p.stuck,
		})
	}
}

// progress sets the condition Progressing from the counts of the status. Reasons and messages are those
// of OpenKruise: health checks read them.
func (p *planner) progress(s *v1alpha1.CloneSetStatus, conditions *planning.Conditions) {
	if !step.HasDeadline(p.Set.Spec.ProgressDeadlineSeconds) {
		conditions.Remove(step.Progressing)
		return
	}
	is := func(status corev1.ConditionStatus, reason v1alpha1.CloneSetConditionReason, message string) planning.SetCondition {
		return planning.SetCondition{Type: step.Progressing, Status: status, Reason: string(reason), Message: message}
	}
	if reason, message := p.resting(s); reason != "" {
		conditions.Put(is(corev1.ConditionTrue, reason, message), p.Now)
		return
	}
	p.Progress(conditions, step.Deadline{
		Seconds: *p.Set.Spec.ProgressDeadlineSeconds, Begins: p.Set.Status.UpdateRevision != s.UpdateRevision,
		Reasons: []string{string(v1alpha1.CloneSetProgressUpdated)},
		Since:   func(c *planning.SetCondition) *metav1.Time { return &c.Updated },
		Within:  is(corev1.ConditionTrue, v1alpha1.CloneSetProgressUpdated, "CloneSet is progressing"),
		Exceeded: is(corev1.ConditionFalse, v1alpha1.CloneSetProgressDeadlineExceeded,
			fmt.Sprintf("CloneSet revision %s has timed out progressing", s.UpdateRevision)),
	})
}

// resting returns why nothing has to happen in the set, and the message for it. The reason is empty if
// pods still must be created, deleted or updated, or become available.
func (p *planner) resting(s *v1alpha1.CloneSetStatus) (v1alpha1.CloneSetConditionReason, string) {
	replicas := planning.Number(p.replicas)
	switch {
	case s.CurrentRevision == s.UpdateRevision && s.Replicas == replicas &&
		s.UpdatedReplicas == replicas && s.UpdatedAvailableReplicas == replicas:
		return v1alpha1.CloneSetAvailable, "CloneSet is available"
	case p.Set.Spec.UpdateStrategy.Paused:
		return v1alpha1.CloneSetProgressPaused, "CloneSet is paused"
	case s.CurrentRevision != s.UpdateRevision && s.ExpectedUpdatedReplicas < replicas && s.ExpectedUpdatedReplicas <= s.UpdatedAvailableReplicas:
		return v1alpha1.CloneSetProgressPartitionAvailable, "CloneSet has been paused due to partition ready"
	default:
		return "", ""
	}
}

// ConditionSeverity returns the severity of a condition of a CloneSet.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	if c.Type == step.Progressing {
		return planning.SuccessSeverity(c)
	}
	return planning.FailureSeverity(c)
}
