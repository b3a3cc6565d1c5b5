// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemonset decides the writes of one step of a DaemonSet of apps.kruise.io. It keeps a slot per node and set,
// which follows the events of pods and nodes: an event costs the same however many nodes there are, and a step reads
// only the slots that have changed and the heads of ordered queues. Its invariants:
//
//   - Slots, counts and queues equal those that are computed from all pods and nodes.
//   - A node has one pod, or two while the new one is to become available before the old one is deleted.
//   - An update does not make a ready pod unavailable while as many nodes as maxUnavailable have no available pod.
//   - A step does one thing on a node: it creates, updates or deletes a pod.
//   - A pod that a hook holds is not deleted.
//   - A step after which nothing changes writes nothing.
package daemonset

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// Kind returns the kind of the owner of pods and revisions that are created or adopted. Owner references that exist may
// have another version of the kind.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("DaemonSet") }

// Set is a DaemonSet, for the controller of sets.
func Set(slots *Slots) planning.Descriptor[*v1alpha1.DaemonSet, v1alpha1.DaemonSetStatus] {
	return planning.Descriptor[*v1alpha1.DaemonSet, v1alpha1.DaemonSetStatus]{
		GroupVersionKind: Kind(), New: func() *v1alpha1.DaemonSet { return &v1alpha1.DaemonSet{} }, Parts: parts,
		Status:     func(set *v1alpha1.DaemonSet) *v1alpha1.DaemonSetStatus { return &set.Status },
		Conditions: conditionsOf, SetConditions: setConditions, Progress: Progress,
		FailedScale: string(v1alpha1.DaemonSetFailedCreate), FailedUpdate: string(v1alpha1.DaemonSetFailedUpdate),
		Slots: slots, Plan: slots.Plan,
	}
}

// Output is the step.
type Output = planning.Output[v1alpha1.DaemonSetStatus]

func parts(set *v1alpha1.DaemonSet) planning.Parts {
	return planning.Parts{Selector: set.Spec.Selector, Template: &set.Spec.Template}
}

// Progress returns how far a set with the status is. Which nodes an update does not reach is known only to the planner, whose
// condition says it.
func Progress(set *v1alpha1.DaemonSet, s *v1alpha1.DaemonSetStatus) planning.Progress {
	conditions, update := conditionsOf(s), rolling(set)
	kept := planning.Number(scaled(update.Partition, int(s.DesiredNumberScheduled)))
	p := planning.Progress{
		Generation: set.Generation, Observed: s.ObservedGeneration, Revision: s.UpdateRevision,
		Desired: s.DesiredNumberScheduled, Replicas: s.CurrentNumberScheduled, Ready: s.NumberReady, Available: s.NumberAvailable,
		Updated: s.UpdatedNumberScheduled, UpdatedAvailable: s.UpdatedReady, Target: max(s.DesiredNumberScheduled-kept, 0),
		Guarded:  conditions.Message(planning.PodsGuarded),
		Failing:  conditions.Message(string(v1alpha1.DaemonSetFailedCreate), string(v1alpha1.DaemonSetFailedUpdate)),
		Exceeded: step.ExceededDeadline(conditions),
		Paused:   ptr.Deref(update.Paused, false), OnDelete: set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteDaemonSetStrategyType,
	}
	if c := conditions.Find(string(v1alpha1.DaemonSetProgressing)); p.OnDelete || c != nil && (c.Reason == partitioned || c.Reason == notReached) {
		p.Target = min(p.Updated, p.Target)
	}
	return p
}

// Plan returns the next step of the set.
func (e *Slots) Plan(set *v1alpha1.DaemonSet, in planning.Input) (Output, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out Output
	p, err := e.planner(set, in, &out)
	if err != nil {
		return Output{}, err
	}
	p.WriteRevisions()
	p.adopt()
	p.visit()
	p.remove()
	p.create()
	p.update()
	out.Status = p.status()
	p.After(p.state.next(in.Now))
	return out, p.Err()
}
