// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMaxDuration(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"1m": time.Minute, "60s": time.Minute, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "720h": 720 * time.Hour, "43200m": 720 * time.Hour,
		"": 0, "59s": 0, "720h1s": 0, "0": 0, "-2h": 0, "+2h": 0, "2": 0, "1d": 0, "1.5h": 0, "30m1h": 0, "999999999h": 0, " 2h": 0, "2h\x1b[2J": 0,
		"2h" + strings.Repeat(" ", 1<<16): 0,
	} {
		budget := builders.Guard("games", "busy", false, "delete")
		budget.Annotations = map[string]string{v1alpha1.GuardMaxDurationKey: value}
		for _, each := range []*policyv1.PodDisruptionBudget{budget, guard.Trim(budget)} {
			got, err := guard.MaxDuration(each)
			expect.Equal(t, fmt.Sprintf("maximum %.20q", value), want, got)
			if (err != nil) != (want == 0) {
				t.Errorf("maximum %.20q: error %v", value, err)
			}
		}
	}
	_, err := guard.MaxDuration(builders.Guard("games", "busy", false, "delete"))
	expect.NoError(t, err)
}

// TestDecide has a pod that started at the second 0, and a probe that has set the label "idle" or not.
func TestDecide(t *testing.T) {
	t.Parallel()
	const hour = 3600
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	exempt := metav1.LabelSelectorRequirement{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist}
	of := func(name, longest string, requirements ...metav1.LabelSelectorRequirement) *policyv1.PodDisruptionBudget {
		budget := builders.Guard("games", name, false)
		budget.Spec.Selector.MatchExpressions = append(requirements, exempt)
		if longest != "" {
			budget.Annotations = map[string]string{v1alpha1.GuardMaxDurationKey: longest}
		}
		return budget
	}
	idle := func(operator metav1.LabelSelectorOperator, value string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "idle", Operator: operator, Values: []string{value}}
	}
	notIn, in := idle(metav1.LabelSelectorOpNotIn, "true"), idle(metav1.LabelSelectorOpIn, "false")
	one := []*policyv1.PodDisruptionBudget{of("one", "1h", notIn)}
	onlyBusy := []*policyv1.PodDisruptionBudget{of("one", "1h", in)}
	with := func(more ...*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
		return append(more, one...)
	}
	unconditional := of("one", "1h", notIn)
	unconditional.Spec.Selector.MatchExpressions = unconditional.Spec.Selector.MatchExpressions[:1]
	ours, theirs := map[string]string{v1alpha1.GuardExemptKey: "max-duration"}, map[string]string{v1alpha1.GuardExemptKey: "max-duration2"}
	many := one
	for i := range 16 {
		many = with(append(many, of(fmt.Sprint(i), "1m", notIn))...)
	}
	transition := func(second int64, keys ...string) []guard.Transition {
		return []guard.Transition{{Labels: append(keys, "idle"), At: at(second)}}
	}
	released, held := guard.Decision{Release: true}, guard.Decision{Hold: true}
	wait := func(seconds int64) guard.Decision { return guard.Decision{Wait: time.Duration(seconds) * time.Second} }
	for name, test := range map[string]struct {
		budgets     []*policyv1.PodDisruptionBudget
		labels      map[string]string
		change      func(*corev1.Pod)
		transitions []guard.Transition
		now         int64
		want        guard.Decision
		guard       string
	}{
		"before the limit":  {budgets: one, now: hour - 1, want: wait(1), guard: "one"},
		"at the limit":      {budgets: one, now: hour, want: released, guard: "one"},
		"since the mark":    {budgets: one, transitions: transition(10), now: hour, want: wait(10), guard: "one"},
		"of the future":     {budgets: one, transitions: transition(10 * hour), now: hour, want: wait(10 * hour), guard: "one"},
		"of the far future": {budgets: one, transitions: transition(1 << 37), now: hour, want: guard.Decision{Wait: 1<<63 - 1}, guard: "one"},
		"not started": {
			budgets: one, change: func(p *corev1.Pod) { p.Status.StartTime = nil }, now: hour, want: wait(-hour + 10*hour), guard: "one",
		},
		"without any time":                 {budgets: one, change: func(p *corev1.Pod) { p.Status.StartTime, p.CreationTimestamp = nil, metav1.Time{} }, now: hour},
		"pending":                          {budgets: one, change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, now: hour},
		"idle":                             {budgets: one, labels: map[string]string{"idle": "true"}, now: hour},
		"the mark is missing, In":          {budgets: onlyBusy, now: hour},
		"the mark is missing, NotIn":       {budgets: one, transitions: transition(10), now: hour + 10, want: released, guard: "one"},
		"the mark is missing, In, ours":    {budgets: onlyBusy, labels: ours, now: hour, want: held},
		"the mark is missing, NotIn, ours": {budgets: one, labels: ours, now: hour, guard: "one"},
		"already released":                 {budgets: one, labels: ours, now: hour, guard: "one"},
		"released, then the mark changes": {
			budgets: one, labels: ours, transitions: transition(hour), now: hour + 1,
			want: guard.Decision{Hold: true, Wait: (hour - 1) * time.Second}, guard: "one",
		},
		"released, then longer": {
			budgets: []*policyv1.PodDisruptionBudget{of("one", "2h", notIn)}, labels: ours, now: hour,
			want: guard.Decision{Hold: true, Wait: hour * time.Second}, guard: "one",
		},
		"released, then no maximum":        {budgets: []*policyv1.PodDisruptionBudget{of("one", "", notIn)}, labels: ours, now: hour, want: held},
		"released, then invalid":           {budgets: []*policyv1.PodDisruptionBudget{of("one", "soon", notIn)}, labels: ours, now: hour, want: held},
		"released, then idle":              {budgets: one, labels: map[string]string{"idle": "true", v1alpha1.GuardExemptKey: "max-duration"}, now: hour, want: held},
		"released, then no guard":          {labels: ours, now: hour, want: held},
		"released by others":               {budgets: one, labels: theirs, now: hour},
		"released by others, no guard":     {labels: theirs, now: hour},
		"a probe may set the label":        {budgets: one, transitions: transition(0, v1alpha1.GuardExemptKey), now: hour},
		"a probe without a state":          {budgets: one, transitions: []guard.Transition{{Labels: []string{v1alpha1.GuardExemptKey}}}, now: hour},
		"a probe has set the label":        {labels: ours, transitions: transition(0, v1alpha1.GuardExemptKey), now: hour},
		"two, one is later":                {budgets: with(of("two", "2h", notIn)), now: hour, want: wait(hour), guard: "two"},
		"two, both are over":               {budgets: with(of("two", "2h", notIn)), now: 2 * hour, want: released, guard: "two"},
		"two, one for ever":                {budgets: with(of("two", "", notIn)), now: hour},
		"two, one selects others":          {budgets: with(of("two", "", idle(metav1.LabelSelectorOpIn, "x"))), now: hour, want: released, guard: "one"},
		"without the exit":                 {budgets: []*policyv1.PodDisruptionBudget{unconditional}, now: hour, want: released, guard: "one"},
		"without the exit, released":       {budgets: []*policyv1.PodDisruptionBudget{unconditional}, labels: ours, now: hour, guard: "one"},
		"more guards than count":           {budgets: many, now: hour},
		"more guards than count, released": {budgets: many, labels: ours, now: hour, want: held},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := builders.Pod("games", "game").Build()
			pod.Labels, pod.CreationTimestamp, pod.Status.StartTime = test.labels, metav1.NewTime(at(9*hour)), new(metav1.NewTime(at(0)))
			if test.change != nil {
				test.change(pod)
			}
			got := guard.Limits(test.budgets).Decide(pod, test.transitions, at(test.now))
			expect.Equal(t, "guard", test.guard, got.Limit.Guard)
			got.Limit = guard.Limit{}
			expect.Equal(t, "decision", test.want, got)
		})
	}
}
