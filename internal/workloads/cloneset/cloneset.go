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
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/step"
)

// Kind returns the kind of the owner of pods, claims and revisions.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("CloneSet") }

// Set is a CloneSet, for the controller of sets. RecreateForClaims is the gate
// RecreatePodWhenChangeVCTInCloneSetGate: with InPlaceIfPossible, pods whose claims have other templates than
// those of the update revision are recreated.
func Set(recreateForClaims bool) planning.Descriptor[*v1alpha1.CloneSet, v1alpha1.CloneSetStatus] {
	return planning.Descriptor[*v1alpha1.CloneSet, v1alpha1.CloneSetStatus]{
		GroupVersionKind: Kind(), New: func() *v1alpha1.CloneSet { return &v1alpha1.CloneSet{} }, Parts: parts,
		Status:     func(set *v1alpha1.CloneSet) *v1alpha1.CloneSetStatus { return &set.Status },
		Conditions: conditionsOf, SetConditions: setConditions, Progress: Progress,
		FailedScale: string(v1alpha1.CloneSetConditionFailedScale), FailedUpdate: string(v1alpha1.CloneSetConditionFailedUpdate),
		Plan: func(set *v1alpha1.CloneSet, in planning.Input) (Output, error) {
			return Plan(set, in, recreateForClaims)
		},
	}
}

// Progress returns how far a set with the status is.
func Progress(set *v1alpha1.CloneSet, s *v1alpha1.CloneSetStatus) planning.Progress {
	conditions := conditionsOf(s)
	p := planning.Progress{
		Generation: set.Generation, Observed: s.ObservedGeneration, Revision: s.UpdateRevision,
		Desired: ptr.Deref(set.Spec.Replicas, 1), Replicas: s.Replicas, Ready: s.ReadyReplicas, Available: s.AvailableReplicas,
		Updated: s.UpdatedReplicas, UpdatedAvailable: s.UpdatedAvailableReplicas, Target: s.ExpectedUpdatedReplicas,
		Guarded:  conditions.Message(planning.PodsGuarded),
		Failing:  conditions.Message(string(v1alpha1.CloneSetConditionFailedScale), string(v1alpha1.CloneSetConditionFailedUpdate)),
		Exceeded: step.ExceededDeadline(conditions),
		Paused:   set.Spec.UpdateStrategy.Paused, OnDelete: set.Spec.UpdateStrategy.Type == v1alpha1.OnDeleteCloneSetUpdateStrategyType,
	}
	if p.OnDelete {
		p.Target = 0
	}
	return p
}

func parts(set *v1alpha1.CloneSet) planning.Parts {
	return planning.Parts{Selector: set.Spec.Selector, Template: &set.Spec.Template, Claims: set.Spec.VolumeClaimTemplates}
}

// Output is the step. Its status counts the pods of the input.
type Output = planning.Output[v1alpha1.CloneSetStatus]

// planner is one call of Plan.
type planner struct {
	*step.Step
	numbers
	// Set is the set with the defaults of its CRD.
	Set               *v1alpha1.CloneSet
	recreateForClaims bool

	// members are the active pods of the set. The set neither counts nor changes other pods.
	members []*member
	byPod   map[*corev1.Pod]*member
	// strangers are the names of pods that the selector matches and the set does not adopt.
	strangers []string
	// budget is how many more available pods the step may take down, and spare how many more ready
	// ones. They may be negative.
	budget, spare int
	// restarts is how many pods that are not ready the update may still restart, and restartsWake when it may be more, zero if
	// that is not known.
	restarts     int
	restartsWake time.Duration
	// stuck is why pods cannot be updated, empty if they can.
	stuck string
	// held is how many pods of the update revision are to be recreated, because their update in place is refused, and maxUnavailable
	// does not permit it now.
	held int

	out Output
}

// Plan returns the next step of the set, see Set.
func Plan(set *v1alpha1.CloneSet, in planning.Input, recreateForClaims bool) (Output, error) {
	p := &planner{Set: set, recreateForClaims: recreateForClaims}
	p.out.Status = *set.Status.DeepCopy()
	var err error
	if p.numbers, err = resolve(&set.Spec); err != nil {
		return p.out, err
	}
	p.Step, err = step.New(step.Set{
		Parts: parts(set), Object: set, Kind: Kind(), Hooks: set.Spec.Lifecycle, InPlace: set.Spec.UpdateStrategy.InPlaceUpdateStrategy,
		RevisionHistoryLimit: set.Spec.RevisionHistoryLimit, CollisionCount: set.Status.CollisionCount,
		CurrentRevision: set.Status.CurrentRevision, FailedUpdate: string(v1alpha1.CloneSetConditionFailedUpdate),
		// The type may change. The condition of the gate is in the write that ends PreparingNormal.
		Gated: true,
	}, in, &p.out.Actions)
	if err != nil {
		return p.out, err
	}
	if err := p.recordClaims(); err != nil {
		return p.out, err
	}
	claimed := p.readPods()
	if set.DeletionTimestamp == nil && !claimed {
		p.WriteRevisions()
		p.plan()
	}
	p.status()
	return p.out, p.Err()
}

// plan decides the writes to pods and claims. Each stage sees the effects of those before it.
func (p *planner) plan() {
	p.advance()
	p.revert()
	p.finish()
	p.deleteFinished()
	p.leave()
	remaining := p.deleteNamed()
	surge := p.updateSurge()
	p.scaleIn(surge)
	p.update()
	p.scaleOut(max(surge, min(remaining, p.maxSurge)))
	p.claims()
	p.collect()
}

// numbers are the fields of the spec that are numbers or percentages of replicas, as numbers.
type numbers struct {
	replicas int
	// partition is how many pods keep an old revision, at most replicas.
	partition int
	// maxUnavailable bounds the pods that are taken down.
	maxUnavailable int
	// maxSurge is how many pods may exist in addition to replicas.
	maxSurge int
	// scaleMaxUnavailable bounds the pods that are created and not available yet.
	scaleMaxUnavailable int
}

// resolve returns the numbers of the spec. Percentages round up, except that of maxUnavailable if
// there is a surge: it rounds down, because the surge already lets the update progress.
func resolve(spec *v1alpha1.CloneSetSpec) (numbers, error) {
	var errs []error
	replicas := int(ptr.Deref(spec.Replicas, 1))
	scaled := func(field string, value *intstr.IntOrString, fallback int, roundUp bool) int {
		if value == nil {
			return fallback
		}
		number, err := intstr.GetScaledValueFromIntOrPercent(value, replicas, roundUp)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is invalid: must be a number or a percentage", field, value.String()))
		}
		return max(number, 0)
	}
	update := &spec.UpdateStrategy
	n := numbers{
		replicas: replicas, partition: scaled("spec.updateStrategy.partition", update.Partition, 0, true),
		maxSurge:            scaled("spec.updateStrategy.maxSurge", update.MaxSurge, 0, true),
		scaleMaxUnavailable: scaled("spec.scaleStrategy.maxUnavailable", spec.ScaleStrategy.MaxUnavailable, math.MaxInt32, true),
	}
	if p := update.Partition; p != nil && p.Type == intstr.String && p.StrVal != "100%" && n.partition >= replicas {
		n.partition = max(replicas-1, 0)
	}
	n.partition = min(n.partition, replicas)
	unavailable := cmp.Or(update.MaxUnavailable, new(intstr.FromString(v1alpha1.DefaultCloneSetMaxUnavailable)))
	n.maxUnavailable = scaled("spec.updateStrategy.maxUnavailable", unavailable, 0, n.maxSurge == 0)
	return n, errors.Join(errs...)
}
