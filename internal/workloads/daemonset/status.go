// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// The reasons of the condition Progressing.
const (
	updated     = "Updated"
	updating    = "Updating"
	paused      = "Paused"
	onDelete    = "OnDelete"
	partitioned = "Partition"
	notReached  = "NodeSelector"
	blocked     = "BlockedByUnavailable"
)

// blockedAfter is for how long nodes must have no available pod before they block an update.
const blockedAfter = time.Minute

// status returns the status before the step. The events of its pods plan the next one.
func (p *planner) status() v1alpha1.DaemonSetStatus {
	n := p.state.counts
	status := v1alpha1.DaemonSetStatus{
		CurrentNumberScheduled: planning.Number(n.scheduled), NumberMisscheduled: planning.Number(n.misscheduled),
		DesiredNumberScheduled: planning.Number(n.fits),
		NumberReady:            planning.Number(n.ready), UpdatedNumberScheduled: planning.Number(n.updated), UpdatedReady: planning.Number(n.updatedReady),
		NumberAvailable: planning.Number(n.available), NumberUnavailable: planning.Number(n.fits - n.available),
		ObservedGeneration: p.set.Generation, DaemonSetHash: revision.Hash(p.History.Update.Name),
	}
	status.UpdateRevision = status.DaemonSetHash
	collisions := p.History.CollisionCount
	if status.CollisionCount = p.set.Status.CollisionCount; collisions > 0 {
		status.CollisionCount = &collisions
	}
	conditions := conditionsOf(&p.set.Status)
	p.putProgress(&status, &conditions)
	for s := range p.state.stuck {
		p.Stuck(s.view.stuck.pod, s.view.stuck.why)
	}
	p.SetConditions(&conditions, conditionsOf(&p.set.Status), nil)
	p.preDownload(&conditions)
	setConditions(&status, conditions)
	return status
}

// preDownload pulls images before the update, on the nodes with old pods that it reaches. With OnDelete, these are all.
func (p *planner) preDownload(conditions *planning.Conditions) {
	n, st := p.state.counts, p.state
	rollout := step.Rollout{UpdatedReady: n.updatedReady, Total: n.fits, AtOnce: max(p.maxUnavailable, p.maxSurge)}
	if st.config.rolling {
		reach := max(n.fits-scaled(rolling(p.set).Partition, n.fits)-n.begun, 0)
		rollout.Pods = min(reach, st.queues[replaces].Len()+st.queues[updates].Len())
	} else {
		rollout.Pods, rollout.AtOnce = n.old, 0
	}
	rollout.Nodes = func() (nodes []string) {
		add := func(s *slot) bool {
			nodes = append(nodes, s.node)
			return len(nodes) < rollout.Pods
		}
		if st.config.rolling {
			st.queues[replaces].Ascend(add)
			if len(nodes) < rollout.Pods {
				st.queues[updates].Ascend(add)
			}
			return nodes
		}
		for _, s := range st.slots {
			if s.view.old {
				nodes = append(nodes, s.node)
			}
		}
		slices.Sort(nodes)
		return nodes
	}
	p.PreDownload(rollout, conditions)
}

// putProgress sets the condition Progressing. progressDeadlineSeconds bound the time in which nodes get available pods of the update
// revision, also while others block the update.
func (p *planner) putProgress(status *v1alpha1.DaemonSetStatus, conditions *planning.Conditions) {
	progress, seconds, reasons := p.progress(), p.set.Spec.ProgressDeadlineSeconds, []string{updating, blocked}
	progress.Type = step.Progressing
	if !step.HasDeadline(seconds) || !slices.Contains(reasons, progress.Reason) {
		conditions.Put(progress, p.Now)
		return
	}
	exceeded := progress
	exceeded.Status, exceeded.Reason = corev1.ConditionFalse, step.DeadlineExceeded
	exceeded.Message = fmt.Sprintf("progressDeadlineSeconds have passed for revision %s. %s", status.UpdateRevision, progress.Message)
	p.Progress(conditions, step.Deadline{
		Seconds: *seconds, Begins: p.set.Status.UpdateRevision != status.UpdateRevision, Reasons: reasons,
		// The conditions of DaemonSets have no other time.
		Since:  func(c *planning.SetCondition) *metav1.Time { return &c.Transitioned },
		Within: progress, Exceeded: exceeded,
	})
}

// progress returns the condition Progressing of a set without a deadline.
func (p *planner) progress() planning.SetCondition {
	newCondition := func(reason, message string, args ...any) planning.SetCondition {
		status := corev1.ConditionFalse
		if reason == updated || reason == updating {
			status = corev1.ConditionTrue
		}
		return planning.SetCondition{Status: status, Reason: reason, Message: fmt.Sprintf(message, args...)}
	}
	n, waiting := p.state.counts, p.state.queues[updates].Len()+p.state.queues[replaces].Len()
	switch {
	case n.misfit > 0 && n.old == 0 && n.updated == n.fits && n.available == n.fits:
		return newCondition(nodeMisfits, "%d nodes that no longer fit have pods of another revision, which are not updated.", n.misfit)
	case n.old == 0 && n.updated == n.fits && n.available == n.fits:
		return newCondition(updated, "All nodes have an available pod of the update revision.")
	case n.old == 0:
		return newCondition(updating, "Nodes have no available pod of the update revision yet.")
	case !p.state.config.rolling:
		return newCondition(onDelete, "%d nodes have pods of another revision. They are updated when their pods are deleted.", n.old)
	case p.paused():
		return newCondition(paused, "The update is paused. %d nodes have pods of another revision.", n.old)
	case waiting > 0 && p.permitted <= 0 && n.begun == n.updated && len(p.acted) == 0:
		return newCondition(partitioned, "spec.updateStrategy.rollingUpdate.partition keeps %d nodes at another revision.", n.old)
	case waiting == 0 && n.unavailable == 0 && n.surging == 0:
		return newCondition(notReached, "spec.updateStrategy.rollingUpdate.selector does not match %d nodes with pods of another revision.", n.old)
	}
	if nodes := p.blocking(); len(nodes) > 0 {
		return newCondition(
			blocked, "Nodes have had no available pod for more than %v, and as many may be unavailable: %s.", blockedAfter, text.List(nodes, text.MaxNames),
		)
	}
	if why := p.notInPlace(); why != "" {
		return newCondition(updating, "Nodes have pods of another revision, which are recreated, because an update in place is not possible: %s.", why)
	}
	return newCondition(updating, "Nodes have pods of another revision, which are being updated.")
}

// notInPlace returns why the pod that is updated next is recreated although the strategy prefers updates in place. It is
// empty if it is not.
func (p *planner) notInPlace() (why string) {
	if !inPlace(p.set) {
		return ""
	}
	for _, class := range []class{replaces, updates} {
		if s, found := p.state.queues[class].Min(); found {
			_, why = p.Change(p.state.config.pair(s).old, p.History.Update)
			return why
		}
	}
	return ""
}

// blocking returns the nodes that have had no available pod for so long that they block the update, nil if they do not.
func (p *planner) blocking() []string {
	if p.state.config.surge || p.unavailable < p.maxUnavailable {
		return nil
	}
	var nodes []string
	p.state.down.Ascend(func(s *slot) bool {
		left := s.since.Add(blockedAfter + p.state.config.minReady).Sub(p.Now)
		if left > 0 {
			p.After(left)
			return false
		}
		nodes = append(nodes, s.node)
		return len(nodes) < p.maxUnavailable
	})
	if len(nodes) < p.maxUnavailable {
		return nil
	}
	return nodes
}

// conditionsOf and setConditions convert the conditions of a status.
func conditionsOf(status *v1alpha1.DaemonSetStatus) planning.Conditions {
	return planning.ConvertConditions(status.Conditions, func(c appsv1.DaemonSetCondition) planning.SetCondition {
		return planning.SetCondition{
			Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, Transitioned: c.LastTransitionTime,
		}
	})
}

func setConditions(status *v1alpha1.DaemonSetStatus, conditions planning.Conditions) {
	status.Conditions = planning.ConvertConditions(conditions, func(c planning.SetCondition) appsv1.DaemonSetCondition {
		return appsv1.DaemonSetCondition{
			Type: appsv1.DaemonSetConditionType(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.Transitioned,
		}
	})
}

// ConditionSeverity returns the severity of a condition of a DaemonSet.
func ConditionSeverity(c *metav1.Condition) planning.Severity {
	switch {
	case c.Type != string(v1alpha1.DaemonSetProgressing):
		return planning.FailureSeverity(c)
	case c.Reason == blocked || c.Reason == step.DeadlineExceeded:
		return planning.SeverityProblem
	case c.Reason == updating:
		return planning.SeverityWaiting
	}
	return planning.ProgressSeverity(c)
}
