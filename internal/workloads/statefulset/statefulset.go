// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statefulset decides the writes of one step of a StatefulSet of apps.kruise.io. Plan is a pure
// function of what the cache contains and of the time. Its invariants:
//
//   - A pod is created only with the name of a replica, and only after the pod that had the name is gone.
//   - A pod that a hook holds is not deleted and not updated.
//   - An update does not make more pods unavailable than maxUnavailable, and does not update more pods
//     than the partition permits. A pod whose update has started counts as unavailable until it is
//     available again, and is continued before another one is started, whatever its labels are by then.
//   - OrderedReady waits for the first replica that is not available. If it is not ready and has another
//     revision than it should have, it is updated: the following replicas would wait for it forever.
//   - A step after which nothing changes writes nothing.
package statefulset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/lifecycle"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// Kind returns the kind of the owner of pods, claims and revisions that are created or adopted. Owner
// references that exist may have another version of the kind.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion().WithKind("StatefulSet") }

// Set is a StatefulSet, for the controller of sets.
func Set() planning.Descriptor[*appsv1beta1.StatefulSet, appsv1beta1.StatefulSetStatus] {
	return planning.Descriptor[*appsv1beta1.StatefulSet, appsv1beta1.StatefulSetStatus]{
		GroupVersionKind: Kind(), New: func() *appsv1beta1.StatefulSet { return &appsv1beta1.StatefulSet{} }, Parts: parts,
		Status:     func(set *appsv1beta1.StatefulSet) *appsv1beta1.StatefulSetStatus { return &set.Status },
		Conditions: conditionsOf, SetConditions: setConditions, Progress: Progress,
		FailedScale: string(appsv1beta1.FailedCreatePod), FailedUpdate: string(appsv1beta1.FailedUpdatePod),
		ClaimSizes: true, Plan: Plan,
	}
}

// Progress returns how far a set with the status is.
func Progress(set *appsv1beta1.StatefulSet, s *appsv1beta1.StatefulSetStatus) planning.Progress {
	strategy, conditions := strategyOf(set), conditionsOf(s)
	p := planning.Progress{
		Generation: set.Generation, Observed: s.ObservedGeneration, Revision: s.UpdateRevision,
		Desired: planning.Number(replicasOf(set)), Replicas: s.Replicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas,
		Updated: s.UpdatedReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas, Paused: strategy.paused, OnDelete: !strategy.rolling,
		Exceeded: step.ExceededDeadline(conditions),
		Guarded:  conditions.Message(planning.PodsGuarded),
		Failing:  conditions.Message(string(appsv1beta1.FailedCreatePod), string(appsv1beta1.FailedUpdatePod)),
	}
	if strategy.rolling {
		p.Target = planning.Number(replicasOf(set) - strategy.partition)
	}
	return p
}

func parts(set *appsv1beta1.StatefulSet) planning.Parts {
	return planning.Parts{Selector: set.Spec.Selector, Template: &set.Spec.Template, Claims: set.Spec.VolumeClaimTemplates}
}

// Output is the step. Pods that it deletes count as terminating in its status.
type Output = planning.Output[appsv1beta1.StatefulSetStatus]

// Plan returns the next step of the set, see Set.
func Plan(set *appsv1beta1.StatefulSet, in planning.Input) (Output, error) {
	var out Output
	p, err := newPlanner(set, in, &out)
	if err != nil {
		return Output{}, err
	}
	p.arrange()
	if set.DeletionTimestamp == nil {
		p.WriteRevisions()
		p.findTargets()
		p.findBlocker()
		p.plan()
	}
	out.Outdated = p.outdated()
	out.Status = p.status()
	return out, p.Err()
}

// plan decides the writes of a set that is not being deleted.
func (p *planner) plan() {
	p.advance()
	p.update(p.createReplicas() && p.deleteExcess())
	p.keep()
	for pod := range p.members() {
		p.addPatch(lifecycle.PrepareTerminating(pod, p.Hooks, p.Now))
	}
}

// keep maintains the identities and the claims of the pods that exist.
func (p *planner) keep() {
	for i := range p.replicas {
		r := &p.replicas[i]
		if r.pod == nil || planning.Terminating(r.pod) || p.gone[r.pod.UID] {
			continue
		}
		p.identify(r)
		if r.pod.Status.Phase == corev1.PodPending {
			p.createClaims(r.name, revision.Of(r.pod, p.History.All))
		}
		p.retainClaims(r.pod, false)
	}
	for _, pod := range p.excess {
		p.retainClaims(pod, true)
	}
}
