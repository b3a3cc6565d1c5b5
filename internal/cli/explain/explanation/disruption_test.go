// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/program/permission"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// busyGames is a guard of pods that are not marked as idle, as kube-controller-manager has computed it.
func busyGames() *policyv1.PodDisruptionBudget {
	budget := ordinary()
	budget.Name, budget.Labels = "busy-games", map[string]string{v1alpha1.GuardKey: "true"}
	budget.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "idle", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
		{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist},
	}
	return budget
}

// ordinary is a budget that permits no disruption.
func ordinary() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "two", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, CurrentHealthy: 2, DesiredHealthy: 2, ExpectedPods: 3},
	}
}

func game(name string, ready corev1.ConditionStatus) *builders.PodBuilder {
	return builders.Pod("ns", name).Label("app", "game").Phase(corev1.PodRunning).Condition(corev1.PodCondition{Type: corev1.PodReady, Status: ready}).
		Owner(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "game", Controller: new(true)})
}

// disrupt returns an input for a ready pod, with the policy of guards, and a marker that sets the label idle.
func disrupt(operation explanation.Operation, budgets ...*policyv1.PodDisruptionBudget) explanation.DisruptionInput {
	return explanation.DisruptionInput{
		Operation: operation, Name: "game-0", Pods: []*corev1.Pod{game("game-0", corev1.ConditionTrue).Build()}, Budgets: budgets, Now: now(),
		Markers: []*v1alpha1.PodProbeMarker{
			builders.Marker("ns", "game").Probe(builders.Probe("idle").Label(v1alpha1.ProbeSucceeded, "idle", "true")).Build(),
		},
		Policy: &admissionregistrationv1.ValidatingAdmissionPolicy{},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: guard.Policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		}},
	}
}

func TestDisruption(t *testing.T) {
	type in = explanation.DisruptionInput
	const (
		now, later, never, info = explanation.Now, explanation.Later, explanation.Never, explanation.Info
		remove, evict, drain    = explanation.Delete, explanation.Evict, explanation.Drain
		frees                   = `it is free when the label does not match "idle notin (true)", which the probe game#idle sets`
		atOnce                  = "the label seamark.dev/guard-exempt of the pod frees it at once"
		syncFailed, scaled      = policyv1.SyncFailedReason, `found no controllers for pod "game-0"`
	)
	const never2h = "not 2h"
	label := func(key, value string) func(*in) { return func(i *in) { i.Pods[0].Labels[key] = value } }
	phase := func(p corev1.PodPhase) func(*in) { return func(i *in) { i.Pods[0].Status.Phase = p } }
	unready := func(edit func(*policyv1.PodDisruptionBudget)) func(*in) {
		return func(i *in) {
			i.Pods[0].Status.Conditions[len(i.Pods[0].Status.Conditions)-1].Status = corev1.ConditionFalse
			edit(i.Budgets[0])
		}
	}
	budget := func(edit func(*policyv1.PodDisruptionBudget)) func(*in) { return func(i *in) { edit(i.Budgets[0]) } }
	limited := func(i *in) {
		i.Budgets[0].Annotations = map[string]string{v1alpha1.GuardMaxDurationKey: "2h"}
		i.Pods[0].Status.StartTime = new(ago(time.Minute))
	}
	both := []*policyv1.PodDisruptionBudget{busyGames(), ordinary()}
	guards, two := []*policyv1.PodDisruptionBudget{busyGames()}, []*policyv1.PodDisruptionBudget{ordinary()}
	for name, test := range map[string]struct {
		operation explanation.Operation
		budgets   []*policyv1.PodDisruptionBudget
		edit      func(*in)
		want      planning.Severity
		// text and evidence are parts of the step.
		text, evidence string
	}{
		"guarded": {remove, guards, nil, later, "PodDisruptionBudget busy-games guards it", frees + ": the pod does not have it"},
		"guarded since": {remove, guards, func(i *in) {
			i.Guards = map[types.NamespacedName]*probestatus.Guard{{Namespace: "ns", Name: "game-0"}: {Name: "busy-games", Since: ago(time.Hour)}}
		}, later, "", "it has done so for 60m"},
		"guarded at most": {evict, guards, limited, later, "", "Seamark's manager frees it after 2h"},
		"guarded at most, no exit": {evict, guards, func(i *in) {
			limited(i)
			i.Budgets[0].Spec.Selector.MatchExpressions = i.Budgets[0].Spec.Selector.MatchExpressions[:1]
		}, later, "", never2h},
		"guarded at most, another one for ever": {remove, guards, func(i *in) {
			limited(i)
			other := busyGames()
			other.Name = "zoo"
			i.Budgets = append(i.Budgets, other)
		}, later, "busy-games, zoo guards it", never2h},
		"guarded, exit":       {remove, guards, label("idle", "false"), later, "", atOnce},
		"guarded, not exempt": {remove, guards, label("idle", "false"), later, "", `sets: it is "false"`},
		"guarded, users":      {remove, guards, nil, later, "", "policies.guards.exemptUsers"},
		"other marker":        {remove, guards, func(i *in) { i.Markers[0].Namespace = "a" }, later, "", `"app=game,idle notin (true)", which no marker sets`},
		"markers unread":      {remove, guards, unreadMarkers, later, "", `"app=game,idle notin (true)"`},
		"free":                {remove, guards, label("idle", "true"), now, "no guard protects it", ""},
		"exempt":              {remove, guards, label(v1alpha1.GuardExemptKey, ""), now, "no guard", ""},
		"other namespace":     {remove, guards, budget(func(b *policyv1.PodDisruptionBudget) { b.Namespace = "a" }), now, "no guard", ""},
		"pending":             {remove, guards, phase(corev1.PodPending), now, "no guard", ""},
		"ordinary budget":     {remove, two, nil, now, "no guard protects it", ""},
		"no policy": {
			remove, guards, func(i *in) { i.Policy = nil }, now, "busy-games does not hold it: the policy seamark-guards is not", "policies.guards.enabled",
		},
		"no binding":             {remove, guards, func(i *in) { i.Binding = nil }, now, "does not hold it", ""},
		"no denial":              {remove, guards, func(i *in) { i.Binding.Spec.ValidationActions = nil }, now, "does not hold it", ""},
		"policy unread":          {remove, guards, unreadPolicy, later, "guards it", "if the policy seamark-guards is installed: no permission"},
		"deleted already":        {remove, guards, terminating, now, "it is being deleted already", ""},
		"evicted already":        {evict, two, terminating, now, "it is being deleted already", ""},
		"evict pending":          {evict, both, phase(corev1.PodPending), now, "evictions of a pod that is Pending ignore budgets", ""},
		"evict finished":         {evict, both, phase(corev1.PodFailed), now, "Failed ignore budgets", ""},
		"evict without a budget": {evict, nil, nil, now, "no PodDisruptionBudget selects it", ""},
		"evict with two": {
			evict, both, nil, never, "PodDisruptionBudgets busy-games, two select it, and the API server refuses", "when only one of them",
		},
		"evict guarded":       {evict, guards, nil, later, "PodDisruptionBudget busy-games guards it", frees},
		"evict guarded, exit": {evict, guards, nil, later, "", atOnce},
		"evict full":          {evict, two, nil, later, "PodDisruptionBudget two needs 2 healthy pods and has 2", ""},
		"evict unready others": {evict, two, func(i *in) {
			i.Others = []*corev1.Pod{game("game-2", "False").Build(), game("game-1", "False").Build(), i.Pods[0]}
		}, later, "", "not ready: game-1, game-2"},
		"evict the last": {evict, two, budget(func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods = 2 }), later, "", "it permits none even if all"},
		"evict permitted": {
			evict, two, budget(func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }), now, "two permits 1 disruption", "",
		},
		"evict not computed": {evict, two, budget(func(b *policyv1.PodDisruptionBudget) {
			b.Status.ObservedGeneration, b.Status.DisruptionsAllowed = 1, 1
		}), later, "two is not computed yet", ""},
		"evict not confirmed": {evict, two, budget(func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptionsAllowed, b.Status.DisruptedPods = 1, map[string]metav1.Time{}
			for i := range 2001 {
				b.Status.DisruptedPods[fmt.Sprint(i)] = metav1.Time{}
			}
		}), later, "not confirmed", ""},
		"evict not computable": {evict, two, budget(func(b *policyv1.PodDisruptionBudget) {
			b.Status = policyv1.PodDisruptionBudgetStatus{Conditions: []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: syncFailed, Message: scaled,
			}}}
		}), never, "two cannot be computed: " + scaled, "minAvailable with a number"},
		"evict unready, always": {evict, two, unready(func(b *policyv1.PodDisruptionBudget) {
			b.Spec.UnhealthyPodEvictionPolicy, b.Status.ObservedGeneration = new(policyv1.AlwaysAllow), 0
		}), now, "unhealthyPodEvictionPolicy AlwaysAllow", ""},
		"evict unready, healthy": {evict, two, unready(func(*policyv1.PodDisruptionBudget) {}), now, "it is not ready, and PodDisruptionBudget two needs 2", ""},
		"evict unready, unhealthy": {
			evict, two, unready(func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 }), later, "needs 2 healthy pods and has 1", "",
		},
		"evict unready, empty": {evict, two, unready(func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 0 }), later, "needs 0 healthy pods", ""},
		"evict ready, always": {
			evict, two, budget(func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) }), later, "", "",
		},
		"drain guarded": {drain, guards, nil, later, "guards it", frees},
		"drain a mirror pod": {
			drain, two, func(i *in) { i.Pods[0].Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} }, info, "drain leaves it", "",
		},
		"drain a daemon": {drain, two, owner("apps/v1", "DaemonSet"), info, "drain leaves it with --ignore-daemonsets", ""},
		"drain our daemon": {
			drain, nil, owner("apps.kruise.io/v1alpha1", "DaemonSet"), now, "no PodDisruptionBudget", "drain needs --force: kubectl takes it",
		},
		"drain a bare pod":     {drain, nil, func(i *in) { i.Pods[0].OwnerReferences = nil }, now, "", "drain needs --force"},
		"drain a finished one": {drain, two, func(i *in) { i.Pods[0].OwnerReferences, i.Pods[0].Status.Phase = nil, corev1.PodSucceeded }, now, "Succeeded", ""},
		"drain a volume": {drain, nil, func(i *in) {
			i.Pods[0].Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, now, "", "drain needs --delete-emptydir-data"},
	} {
		t.Run(name, func(t *testing.T) {
			var budgets []*policyv1.PodDisruptionBudget
			for _, b := range test.budgets {
				budgets = append(budgets, b.DeepCopy())
			}
			given := disrupt(test.operation, budgets...)
			if test.edit != nil {
				test.edit(&given)
			}
			x := explanation.Disruption(given)
			step := x.Steps[0]
			refused := step.Verdict == later || step.Verdict == never
			evidence := strings.Join(step.Evidence, "\n")
			says := strings.Contains(evidence, test.evidence)
			if test.evidence == never2h {
				says = !strings.Contains(evidence, "2h")
			}
			if step.Verdict != test.want || !strings.Contains(step.Text, test.text) || !says {
				t.Errorf("%+v; want %s, %q, %q", step, test.want, test.text, test.evidence)
			}
			if test.want == info || test.operation == drain && test.want == now && test.evidence == "" {
				expect.Equal(t, "evidence", 0, len(step.Evidence))
			}
			if x.Free == refused || refused && x.Next != "kubectl -n ns describe pdb "+given.Budgets[0].Name {
				t.Errorf("free %t, next %q for %s", x.Free, x.Next, step.Verdict)
			}
		})
	}
}

func terminating(i *explanation.DisruptionInput) { i.Pods[0].DeletionTimestamp = new(ago(0)) }

func unreadMarkers(i *explanation.DisruptionInput) {
	i.Markers, i.Unread = nil, map[permission.Resource]permission.Missing{permission.Markers: {}}
}

func unreadPolicy(i *explanation.DisruptionInput) {
	i.Policy, i.Unread = nil, map[permission.Resource]permission.Missing{explanation.Policies: {Resource: explanation.Policies, Verb: "get"}}
}

func owner(version, kind string) func(*explanation.DisruptionInput) {
	return func(i *explanation.DisruptionInput) {
		i.Pods[0].OwnerReferences[0].APIVersion, i.Pods[0].OwnerReferences[0].Kind = version, kind
	}
}

// TestDrainSpendsDisruptions drains two pods of a budget that permits one disruption.
func TestDrainSpendsDisruptions(t *testing.T) {
	in := disrupt(explanation.Drain, ordinary())
	in.Budgets[0].Status.DisruptionsAllowed = 1
	in.Pods = append(in.Pods, game("game-9", corev1.ConditionTrue).Build())
	x := explanation.Disruption(in)
	expect.Equal(t, "conclusion", "1 go now, 1 wait, 0 never", x.Conclusion)
	expect.Equal(t, "reason", "PodDisruptionBudget two permits 1 disruption, for other pods of the node", x.Steps[0].Text)
}

// TestDrainIsBounded groups the pods of a full node.
func TestDrainIsBounded(t *testing.T) {
	in := disrupt(explanation.Drain, busyGames())
	for i := range 200 {
		in.Pods = append(in.Pods, game(fmt.Sprintf("game-%03d", i+1), corev1.ConditionTrue).Build())
		failing := ordinary()
		failing.Name, failing.Spec.Selector.MatchLabels = fmt.Sprintf("two-%03d", i), map[string]string{"alone": fmt.Sprint(i)}
		in.Pods = append(in.Pods, game(fmt.Sprintf("alone-%03d", i), corev1.ConditionTrue).Label("app", "alone").Label("alone", fmt.Sprint(i)).Build())
		in.Budgets = append(in.Budgets, failing)
	}
	in.Pods = append(in.Pods, game("daemon", corev1.ConditionTrue).Build())
	in.Pods[len(in.Pods)-1].OwnerReferences[0].Kind = "DaemonSet"
	x := explanation.Disruption(in)
	expect.Equal(t, "steps", 402, len(x.Steps))
	expect.Equal(t, "conclusion", "0 go now, 401 wait, 0 never; drain leaves 1", x.Conclusion)
	steps := x.Grouped().Steps
	expect.Equal(t, "groups", 12, len(steps))
	expect.Equal(t, "largest group", "Pods ns/game-0, ns/game-001, ns/game-002, ns/game-003, ns/game-004, ns/game-005, ns/game-006, ns/game-007, ns/game-008, "+
		"ns/game-009 and 191 more", steps[0].Title)
	expect.Equal(t, "rest", explanation.Step{Title: "191 more pods", Verdict: explanation.Later, Text: "for other reasons, which -o json has"}, steps[10])
}
