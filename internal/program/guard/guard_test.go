// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
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

// TestProtectedPods is about the pods. TestSelectorsOfGuards in test/integration/policies is about selectors.
func TestProtectedPods(t *testing.T) {
	t.Parallel()
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	for name, test := range map[string]struct {
		value            string
		change           func(*corev1.Pod)
		deletion, update string
	}{
		"guarded from deletion": {value: "delete", deletion: "busy"},
		"guarded from updates":  {value: "update", deletion: "busy", update: "strict"},
		"not selected":          {value: "no"},
		"exempt":                {value: "update", change: func(p *corev1.Pod) { p.Labels[v1alpha1.GuardExemptKey] = "" }},
		"terminating":           {value: "update", change: func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }},
		"mirror pod":            {value: "update", change: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} }},
		"pending":               {value: "update", change: phase(corev1.PodPending)},
		"succeeded":             {value: "update", change: phase(corev1.PodSucceeded)},
		"failed":                {value: "update", change: phase(corev1.PodFailed)},
		"without a phase":       {value: "update", change: phase("")},
		"unknown":               {value: "update", change: phase(corev1.PodUnknown), deletion: "busy", update: "strict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := builders.Pod("games", "game").Label(builders.GuardLabel, test.value).Build()
			if test.change != nil {
				test.change(pod)
			}
			guards := builders.Guards()
			expect.Equal(t, "guard of deletions", test.deletion, guards.Deletion(pod))
			expect.Equal(t, "guard of updates", test.update, guards.Update(pod))
			expect.Equal(t, "without guards", "", guard.Guards(nil).Deletion(pod))
		})
	}
}

// TestSince is about transitions of a probe that sets a label which the guard requires, in seconds after the pod was created.
func TestSince(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	transition := func(seconds int64, keys ...string) guard.Transition {
		return guard.Transition{Labels: keys, At: at(seconds)}
	}
	for name, test := range map[string]struct {
		started     int64
		transitions []guard.Transition
		want        int64
	}{
		"no mark":              {started: 5, want: 5},
		"not started":          {want: 0},
		"mark":                 {started: 5, transitions: []guard.Transition{transition(9, "a", builders.GuardLabel)}, want: 9},
		"latest of two":        {started: 5, transitions: []guard.Transition{transition(9, builders.GuardLabel), transition(7, builders.GuardLabel)}, want: 9},
		"of another label":     {started: 5, transitions: []guard.Transition{transition(9, "a")}, want: 5},
		"before the pod":       {started: 5, transitions: []guard.Transition{transition(3, builders.GuardLabel)}, want: 5},
		"not started, marked":  {transitions: []guard.Transition{transition(9, builders.GuardLabel)}, want: 9},
		"clock of the future":  {started: 5, transitions: []guard.Transition{transition(1<<40, builders.GuardLabel)}, want: 1 << 40},
		"without a known time": {started: 5, transitions: []guard.Transition{{Labels: []string{builders.GuardLabel}}}, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := builders.Pod("games", "game").Label(builders.GuardLabel, "delete").Build()
			pod.CreationTimestamp = metav1.NewTime(at(0))
			if test.started != 0 {
				pod.Status.StartTime = new(metav1.NewTime(at(test.started)))
			}
			found, since := builders.Guards().Since(pod, test.transitions)
			expect.Equal(t, "guard", "busy", found)
			expect.Equal(t, "since", test.want, since.Unix())
			found, since = guard.Guards(nil).Since(pod, test.transitions)
			expect.Equal(t, "without guards", "", found)
			expect.Equal(t, "since never", true, since.IsZero())
		})
	}
}

// TestBudgetsThatAreNoGuards also has more guards than count.
func TestBudgetsThatAreNoGuards(t *testing.T) {
	t.Parallel()
	pod := builders.Pod("games", "game").Label(builders.GuardLabel, "delete").Build()
	other := builders.Guard("games", "a", true, "delete")
	other.Labels[v1alpha1.GuardKey] = "yes"
	invalid := builders.Guard("games", "b", false)
	expect.Equal(t, "guard", "", guard.New([]*policyv1.PodDisruptionBudget{other, invalid}).Deletion(pod))
	budgets := []*policyv1.PodDisruptionBudget{builders.Guard("games", "z", false, "delete")}
	for i := range 16 {
		budgets = append(budgets, builders.Guard("games", fmt.Sprintf("a-%d", i), false, "other"))
	}
	expect.Equal(t, "the 17th guard", "", guard.New(budgets).Deletion(pod))
	expect.Equal(t, "the 16th guard", "z", guard.New(budgets[:16]).Deletion(pod))
}

func TestMessage(t *testing.T) {
	t.Parallel()
	held := guard.Held{}
	expect.Equal(t, "message of none", "", held.Message())
	held.Add("", "free")
	for _, pod := range []string{"d", "c", "b", "a", "a"} {
		held.Add("busy", pod)
	}
	expect.Equal(t, "message", "PodDisruptionBudget busy guards a, b, c and 1 more", held.Message())
	name, pod := guard.FirstOf(held.Message())
	expect.Equal(t, "first guard and pod", "busy a", name+" "+pod)
	name, pod = guard.FirstOf("PodDisruptionBudget $(reboot) guards a")
	expect.Equal(t, "first of another text", "", name+pod)
	for _, name := range []string{"x", "y", "z", "w"} {
		held.Add(name, "a")
	}
	want := "PodDisruptionBudget busy guards a, b, c and 1 more; PodDisruptionBudget w guards a; PodDisruptionBudget x guards a; 2 more budgets guard pods"
	expect.Equal(t, "message of several", want, held.Message())
}
