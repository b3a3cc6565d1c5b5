// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloneset decides the writes of one step of a CloneSet. Plan is a pure function of what the
// cache contains and of the time. Its invariants:
//
//   - A pod that a hook holds is not deleted and not updated.
//   - A step does not make more pods unavailable than maxUnavailable, counting its deletions for
//     scaling, for podsToDelete and for updates together. A pod counts as unavailable from the moment
//     in which it enters PreparingDelete or PreparingUpdate until it is available again. Only a pod
//     whose preDelete hook has released it is deleted without regard to the other pods.
//   - An update does not update more pods than the partition permits. A pod whose update has started
//     is continued before another one is started, whatever its labels are by then.
//   - A pod is changed by at most one patch or deletion per step.
//   - A step after which nothing changes writes nothing.
package cloneset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/revision"
)

// Kind returns the kind of the owner of pods, claims and revisions.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("CloneSet") }

// Input is what a step depends on. Plan does not change it.
type Input struct {
	// Set is the set with the defaults of its CRD.
	Set *v1alpha1.CloneSet
	// Pods are the pods that the set controls, including terminating and finished ones and those that
	// the selector does not match, and the pods of the namespace that the selector matches and that
	// have no controller.
	Pods []*corev1.Pod
	// Claims are the claims that the set or a pod in Pods owns, including terminating ones.
	Claims []*corev1.PersistentVolumeClaim
	// Revisions are the revisions that the set controls, and those without a controller that the
	// selector matches.
	Revisions []*appsv1.ControllerRevision
	// Encoder is that of the set. It may be nil.
	Encoder *revision.Encoder
	// Nodes are the labels of the pods' nodes by the name of the node. They are read only if the
	// template has topologySpreadConstraints.
	Nodes map[string]map[string]string
	// Markers is what is known about the markers that select the pods.
	Markers workload.Markers
	// RecreateForClaims is the gate RecreatePodWhenChangeVCTInCloneSetGate: with InPlaceIfPossible, pods
	// whose claims have other templates than those of the update revision are recreated.
	RecreateForClaims bool
	// TakenNames are names of pods that the set must not use: a create failed because a pod that
	// does not belong to the set has the name. It may be nil.
	TakenNames map[string]bool
	// Now is the current time.
	Now time.Time
}

// Output is the step.
type Output struct {
	workload.Actions
	// Status is the whole status. It counts the pods of the input. It equals the set's status if
	// nothing changed. See Failed.
	Status v1alpha1.CloneSetStatus
}

// Settled reports whether all pods that the set should have exist and are available, and the step
// writes nothing: the status stays as it is until something changes.
func (o *Output) Settled(set *v1alpha1.CloneSet) bool {
	replicas := int32(1)
	if set.Spec.Replicas != nil {
		replicas = *set.Spec.Replicas
	}
	s := &o.Status
	return o.Empty() && s.Replicas == replicas && s.ReadyReplicas == replicas && s.AvailableReplicas == replicas
}

// planner is one call of Plan.
type planner struct {
	Input
	numbers
	selector  labels.Selector
	revisions revision.Result
	templates map[string]*corev1.PodTemplateSpec
	// differences are those of the templates of old revisions to that of the set, by name of the revision.
	differences map[string]*inplace.Difference

	// members are the active pods of the set. The set neither counts nor changes other pods.
	members []*member
	// strangers are the names of pods that the selector matches and the set does not adopt.
	strangers []string
	// budget is how many more available pods the step may take down, and spare how many more ready
	// ones. They may be negative.
	budget, spare int
	// stuck is why pods cannot be updated, empty if they can.
	stuck string

	out Output
}

// Plan returns the next step of the set. An error means that the set is invalid in a way that its CRD
// does not reject, or that a revision cannot be decoded.
func Plan(in Input) (Output, error) {
	p := &planner{Input: in, differences: make(map[string]*inplace.Difference)}
	p.out.Status = *in.Set.Status.DeepCopy()
	var err error
	if p.selector, err = metav1.LabelSelectorAsSelector(in.Set.Spec.Selector); err != nil {
		return p.out, fmt.Errorf("spec.selector: %w", err)
	}
	if p.numbers, err = resolve(&in.Set.Spec); err != nil {
		return p.out, err
	}
	if err := p.readRevisions(); err != nil {
		return p.out, err
	}
	claimed := p.readPods()
	if in.Set.DeletionTimestamp == nil && !claimed {
		p.writeRevisions()
		if err := p.step(); err != nil {
			return p.out, err
		}
	}
	p.status()
	return p.out, nil
}

// step decides the writes to pods and claims. Each stage sees the effects of those before it.
func (p *planner) step() error {
	p.advance()
	p.revert()
	p.finish()
	p.deleteFinished()
	remaining := p.deleteNamed()
	surge := p.updateSurge()
	p.scaleIn(surge)
	if err := p.update(); err != nil {
		return err
	}
	creates, err := p.scaleOut(max(surge, min(remaining, p.maxSurge)))
	if err != nil {
		return err
	}
	p.claims(creates)
	p.collect()
	return nil
}

// after requests the next step at the latest after the time. Zero and negative times are ignored.
func (p *planner) after(d time.Duration) {
	if d > 0 && (p.out.RequeueAfter == 0 || d < p.out.RequeueAfter) {
		p.out.RequeueAfter = d
	}
}
