// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// InputOf returns the input of a step with everything that a leader sees.
func InputOf(view *State) planning.Input {
	return planning.Input{Pods: view.Pods, Claims: view.Claims, Revisions: view.Revisions, TakenNames: view.Taken, Now: view.Now}
}

// PlannerOf is the planner of a kind of sets, called as its controller does. S is a pointer to a set.
type PlannerOf[S Object, T any] struct {
	Kind planning.Kind[S, T]
	// Input returns the input of a step. It is InputOf if it is nil.
	Input func(view *State) planning.Input
}

// Plan checks that the planner does not change its input, that no step writes a pod twice, and, for one of
// five steps, that the planner decides the same about the pods of the cache as about complete pods.
func (p PlannerOf[S, T]) Plan(view *State) (Step, error) {
	if p.Input == nil {
		p.Input = InputOf
	}
	set, in := view.Set.(S), p.Input(view)
	before := set.DeepCopyObject()
	out, err := p.Kind.Plan(set, in)
	if err != nil {
		return Step{}, err
	}
	if !equality.Semantic.DeepEqual(before, Object(set)) {
		return Step{}, errors.New("Plan changed its input")
	}
	if view.Now.UnixNano()%5 == 0 {
		cached := in
		cached.Pods = make([]*corev1.Pod, len(in.Pods))
		for i, pod := range in.Pods {
			cached.Pods[i] = trim.Pod([]schema.GroupKind{p.Kind.Kind.GroupKind()})(pod)
		}
		trimmed, err := p.Kind.Plan(set, cached)
		if err != nil {
			return Step{}, err
		}
		if !equality.Semantic.DeepEqual(withoutPods(&out), withoutPods(&trimmed)) {
			return Step{}, fmt.Errorf("the step differs if pods are trimmed: %+v, want %+v", trimmed, out)
		}
	}
	return Step{Actions: out.Actions, Status: func(failures []planning.Failure) Object {
		next := set.DeepCopyObject().(S)
		status := out.Status
		p.Kind.Failed(&status, failures, view.Now)
		*p.Kind.Status(next) = status
		return next
	}}, once(&out.Actions)
}

// withoutPods returns the step with only the names of the pods that it changes.
func withoutPods[T any](step *planning.Output[T]) planning.Output[T] {
	reduced := *step
	reduced.Patches, reduced.Deletes = slices.Clone(step.Patches), slices.Clone(step.Deletes)
	name := func(pod *corev1.Pod) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name}} }
	for i := range reduced.Patches {
		reduced.Patches[i].Pod = name(reduced.Patches[i].Pod)
	}
	for i := range reduced.Deletes {
		reduced.Deletes[i].Pod = name(reduced.Deletes[i].Pod)
	}
	return reduced
}

// once returns an error if the step writes a pod twice.
func once(a *planning.Actions) error {
	seen := map[types.UID]bool{}
	for i := range a.Patches {
		if seen[a.Patches[i].Pod.UID] {
			return fmt.Errorf("pod %s is written twice", a.Patches[i].Pod.Name)
		}
		seen[a.Patches[i].Pod.UID] = true
	}
	for i := range a.Deletes {
		if seen[a.Deletes[i].Pod.UID] {
			return fmt.Errorf("pod %s is written twice", a.Deletes[i].Pod.Name)
		}
		seen[a.Deletes[i].Pod.UID] = true
	}
	return nil
}
