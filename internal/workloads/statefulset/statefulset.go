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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1beta1 "github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Kind returns the kind of the owner of pods, claims and revisions that are created or adopted. Owner
// references that exist may have another version of the kind.
func Kind() schema.GroupVersionKind { return appsv1beta1.GroupVersion().WithKind("StatefulSet") }

// Input is what a step depends on. Plan does not change it.
type Input struct {
	// Set is the set.
	Set *appsv1beta1.StatefulSet
	// Pods are the pods that the set controls, and those without a controller that its selector
	// matches.
	Pods []*corev1.Pod
	// Claims are the claims of the namespace with names of the set's claims. Others are ignored.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are the revisions that the set controls, and those without a controller that its
	// selector matches.
	Revisions []*appsv1.ControllerRevision
	// Encoder is that of the set. It may be nil.
	Encoder *revision.Encoder
	// Markers is what is known about the markers that select pods of the set.
	Markers workload.Markers
	// Now is the time.
	Now time.Time
}

// Output is what a step does.
type Output struct {
	workload.Actions
	// Status is the status after the writes have succeeded. See Failed.
	Status appsv1beta1.StatefulSetStatus
}

// Settled reports whether all pods that the set should have exist and are available, and the step
// writes nothing: the status stays as it is until something changes.
func (o *Output) Settled(set *appsv1beta1.StatefulSet) bool {
	s, replicas := &o.Status, replicasOf(set)
	return o.Empty() && int(s.Replicas) == replicas && int(s.ReadyReplicas) == replicas && int(s.AvailableReplicas) == replicas
}

// Plan returns the writes of the next step and the status after it. It fails if the selector or a
// revision is invalid.
func Plan(in Input) (Output, error) {
	var out Output
	p, err := newPlanner(&in, &out)
	if err != nil {
		return Output{}, err
	}
	p.arrange()
	if in.Set.DeletionTimestamp == nil {
		p.findTargets()
		p.findBlocker()
		if err := p.step(); err != nil {
			return Output{}, err
		}
	}
	out.Status = p.status()
	return out, nil
}

// step decides the writes of a set that is not being deleted.
func (p *planner) step() error {
	if err := p.advance(); err != nil {
		return err
	}
	proceed, err := p.scale()
	if err != nil {
		return err
	}
	if err := p.update(proceed); err != nil {
		return err
	}
	p.keep()
	return nil
}

// keep maintains the identities and the claims of the pods that exist.
func (p *planner) keep() {
	for i := range p.replicas {
		r := &p.replicas[i]
		if r.pod == nil || workload.Terminating(r.pod) || p.gone[r.pod.UID] {
			continue
		}
		p.identify(r)
		if r.pod.Status.Phase == corev1.PodPending {
			p.createClaims(r.name)
		}
		p.retainClaims(r.pod, false)
	}
	for _, pod := range p.excess {
		p.retainClaims(pod, true)
	}
}
