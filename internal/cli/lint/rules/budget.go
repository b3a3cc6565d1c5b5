// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
)

// beyond is a number of pods that no budget selects.
const beyond = 1_000_000

// budget is a PodDisruptionBudget.
type budget struct {
	*object
	spec         policyv1.PodDisruptionBudgetSpec
	requirements requirements
}

// budget reads a PodDisruptionBudget. One without a selector selects no pod.
func (c *checker) budget(o *object) {
	for _, key := range []string{v1alpha1.GuardKey, v1alpha1.GuardUpdateKey} {
		if value, found := o.raw.GetLabels()[key]; found && value != "true" {
			c.add(ruleGuardValue, o, "metadata.labels["+key+"]", fmt.Sprintf("%q has no effect", value), `set it to "true", or remove the label`)
		}
	}
	var b policyv1.PodDisruptionBudget
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.raw.Object, &b) != nil || b.Spec.Selector == nil {
		return
	}
	if _, err := guard.MaxDuration(&b); err != nil && guard.Is(b.Labels) {
		path, problem, _ := strings.Cut(err.Error(), ": ")
		c.add(ruleGuardValue, o, path, problem, "")
	}
	c.budgets = append(c.budgets, &budget{object: o, spec: b.Spec, requirements: requirementsOf(b.Spec.Selector)})
}

// isGuard reports whether the policies of guards obey the budget.
func (b *budget) isGuard() bool { return guard.Is(b.raw.GetLabels()) }

// checkBudgets checks the budgets of a namespace.
func (c *checker) checkBudgets(s *scope) {
	guards := 0
	for i, b := range s.budgets {
		c.checkNumbers(s, b)
		if n := slices.IndexFunc(s.budgets[max(i-maxCompared, 0):i], func(other *budget) bool { return s.sharePods(b, other) }); n >= 0 {
			c.add(ruleBudgetOverlap, b.object, "spec.selector",
				fmt.Sprintf("%s can select the same pods: evictions of such a pod fail", s.budgets[max(i-maxCompared, 0)+n].place()),
				"let the selectors exclude each other, or use one budget")
		}
		if !b.isGuard() {
			continue
		}
		if guards++; guards == guard.Most+1 {
			c.add(ruleGuards, b.object, "metadata.labels["+v1alpha1.GuardKey+"]",
				fmt.Sprintf("the namespace has more than %d guards: each of them takes time of the API server for each deletion there", guard.Most),
				"select the pods of several guards with one")
		}
		c.checkGuard(s, b)
	}
}

// checkNumbers finds a percentage of pods with a mark.
func (c *checker) checkNumbers(s *scope, b *budget) {
	mark := s.markIn(b)
	if mark == "" {
		return
	}
	for field, value := range map[string]*intstr.IntOrString{"maxUnavailable": b.spec.MaxUnavailable, "minAvailable": b.spec.MinAvailable} {
		if value != nil && value.Type == intstr.String && value.StrVal != "0%" && value.StrVal != "100%" {
			c.add(ruleBudgetPercentage, b.object, "spec."+field,
				fmt.Sprintf("%s is a part of all replicas, also of those that the selector does not match: probes set the label %s", value.StrVal, mark),
				"use a number")
		}
	}
}

// markIn returns the first label of the selector that a probe sets, empty if none does.
func (s *scope) markIn(b *budget) string {
	var marks []string
	for i := range b.requirements {
		if key := b.requirements[i].Key(); s.marks.Has(key) {
			marks = append(marks, key)
		}
	}
	return strings.Join(marks[:min(1, len(marks))], "")
}

// sharePods reports whether both budgets select a pod template of the manifests, or, if they have none for one of them, whether
// the selectors can.
func (s *scope) sharePods(a, b *budget) bool {
	if !overlap(a.requirements, b.requirements) {
		return false
	}
	selected := func(b *budget) (all []*workload) {
		for _, w := range s.workloads {
			if b.requirements.match(w.pod.Labels, s.open) {
				all = append(all, w)
			}
		}
		return all
	}
	pods, others := selected(a), selected(b)
	return len(pods) == 0 || len(others) == 0 || slices.ContainsFunc(pods, func(w *workload) bool { return slices.Contains(others, w) })
}

// checkGuard finds a guard that does not do what a guard is for.
func (c *checker) checkGuard(s *scope, b *budget) {
	if !slices.ContainsFunc(b.requirements, func(r labels.Requirement) bool {
		return r.Key() == v1alpha1.GuardExemptKey && r.Operator() == selection.DoesNotExist
	}) {
		c.add(ruleGuardExempt, b.object, "spec.selector",
			"the label "+v1alpha1.GuardExemptKey+" of a pod does not permit its eviction",
			"add {key: "+v1alpha1.GuardExemptKey+", operator: DoesNotExist} to matchExpressions")
	}
	if field, value := b.permits(); field != "" {
		c.add(ruleGuardEvictions, b.object, "spec."+field, value+" permits evictions", "set maxUnavailable to 0")
	}
	if policy := b.spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		c.add(ruleGuardEvictions, b.object, "spec.unhealthyPodEvictionPolicy", "AlwaysAllow permits evictions of pods that are not ready", "remove the field")
	}
	if len(s.markers) == 0 {
		return
	}
	for i := range b.requirements {
		if key := b.requirements[i].Key(); key != v1alpha1.GuardExemptKey && !s.open.Has(key) && !s.templates().Has(key) {
			c.add(ruleGuardLabel, b.object, "spec.selector",
				fmt.Sprintf("no probe and no pod template of the manifests sets the label %s", key), "correct the key, or set it in a markerPolicy")
		}
	}
	if _, limited := b.raw.GetAnnotations()[v1alpha1.GuardMaxDurationKey]; limited {
		c.checkPrinted(s, b)
	}
}

// checkPrinted finds a label in the selector of a guard with a maximum that has its value from a message.
func (c *checker) checkPrinted(s *scope, b *budget) {
	for i := range b.requirements {
		if key := b.requirements[i].Key(); s.printed.Has(key) {
			c.add(ruleGuardPrinted, b.object, "spec.selector",
				fmt.Sprintf("probes print the value of the label %s: the maximum counts from the state of the probe, not from the value", key),
				"let the command fail while the pod is busy, and select by a label of its states")
		}
	}
}

// permits returns the number by which the API server can permit evictions, and its field, nothing if it never does.
func (b *budget) permits() (field, value string) {
	switch most, least := b.spec.MaxUnavailable, b.spec.MinAvailable; {
	case most != nil && most.String() != "0" && most.String() != "0%":
		return "maxUnavailable", most.String()
	case least != nil && least.String() != "100%" && (least.Type == intstr.String || least.IntVal < beyond):
		return "minAvailable", least.String()
	}
	return "", ""
}

// templates returns the keys of the labels of all pod templates.
func (s *scope) templates() sets.Set[string] {
	keys := sets.New[string]()
	for _, w := range s.workloads {
		keys = keys.Union(sets.KeySet(w.pod.Labels))
	}
	return keys
}
