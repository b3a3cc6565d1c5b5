// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard decides which pods must not be deleted or updated because a guard protects them: a PodDisruptionBudget with the
// label seamark.dev/guard. The API server refuses such requests by the policies in config/policies/guards.yaml, whose rules these
// are. Planners do not choose such pods. It is pure.
package guard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// Guards are those of one namespace. The zero value protects no pod.
type Guards []guard

type guard struct {
	name     string
	updates  bool
	selector labels.Selector
	// max is how long the guard protects a pod, 0 if for ever.
	max time.Duration
}

// Policy is the name of the admission policy that refuses the deletion of guarded pods, and of its binding.
const Policy = "seamark-guards"

// Labels are the labels of guards, for selectors.
func Labels() labels.Set { return labels.Set{v1alpha1.GuardKey: "true"} }

// Is reports whether a PodDisruptionBudget with the labels is a guard.
func Is(set map[string]string) bool { return set[v1alpha1.GuardKey] == "true" }

// Most is the number of guards of a namespace that count. A planner compares each of them with each pod. The API server refuses
// what the others protect.
const Most = 16

// New returns the first 16 guards among the budgets of a namespace, by name. A budget whose selector is invalid, which API servers
// do not store, is none.
func New(budgets []*policyv1.PodDisruptionBudget) Guards {
	named := make([]*policyv1.PodDisruptionBudget, 0, len(budgets))
	for _, budget := range budgets {
		if Is(budget.Labels) {
			named = append(named, budget)
		}
	}
	slices.SortFunc(named, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	var guards Guards
	for _, budget := range named[:min(Most, len(named))] {
		if selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err == nil {
			// An invalid maximum is none.
			longest, _ := MaxDuration(budget)
			guards = append(guards, guard{budget.Name, budget.Labels[v1alpha1.GuardUpdateKey] == "true", selector, longest})
		}
	}
	return guards
}

// Deletion returns the name of the first guard that protects the pod from deletion, empty if none does.
func (g Guards) Deletion(pod *corev1.Pod) string {
	return g.first(pod, func(*guard) bool { return true })
}

// Update returns the name of the first guard that protects the pod from changes that restart its containers, empty if none does.
func (g Guards) Update(pod *corev1.Pod) string {
	return g.first(pod, func(each *guard) bool { return each.updates })
}

func (g Guards) first(pod *corev1.Pod, counts func(*guard) bool) string {
	if found := g.firstOf(pod, counts); found != nil {
		return found.name
	}
	return ""
}

func (g Guards) firstOf(pod *corev1.Pod, counts func(*guard) bool) *guard {
	if len(g) == 0 || !protected(pod) {
		return nil
	}
	for i := range g {
		if counts(&g[i]) && g[i].selector.Matches(labels.Set(pod.Labels)) {
			return &g[i]
		}
	}
	return nil
}

// protected reports whether guards protect the pod: not one whose eviction ignores budgets, nor one with the label.
func protected(pod *corev1.Pod) bool {
	_, exempt := pod.Labels[v1alpha1.GuardExemptKey]
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return !exempt && !mirror && pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodUnknown)
}

// Held are pods that a step has left alone because of guards, by the name of the guard.
type Held map[string]sets.Set[string]

// Add records a pod. It does nothing if the guard has no name.
func (h Held) Add(name, pod string) {
	switch {
	case name == "":
	case h[name] == nil:
		h[name] = sets.New(pod)
	default:
		h[name].Insert(pod)
	}
}

// FirstOf returns the first guard and the first pod that a Message names, both empty if the text is none.
func FirstOf(message string) (name, pod string) {
	parts := regexp.MustCompile(`^PodDisruptionBudget ([a-z0-9.-]+) guards ([a-z0-9./-]+)`).FindStringSubmatch(message)
	if parts == nil {
		return "", ""
	}
	return parts[1], parts[2]
}

// Message describes the pods for users, empty if there are none. It has at most three names of pods per guard, of at most three
// guards.
func (h Held) Message() string {
	const listed = 3
	var parts []string
	for name := range h {
		parts = append(parts, "PodDisruptionBudget "+name+" guards "+text.List(sets.List(h[name]), listed))
	}
	slices.Sort(parts)
	if more := len(parts) - listed; more > 0 {
		parts = append(parts[:listed], fmt.Sprintf("%d more budgets guard pods", more))
	}
	return strings.Join(parts, "; ")
}
