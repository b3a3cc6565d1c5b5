// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// guarded creates a guard of pods that are not idle, with a maximum, and waits until it is in effect for the pod.
func (w *world) guarded(pod, longest string) *policyv1.PodDisruptionBudget {
	w.Helper()
	w.Apply(w, env.Manifests(w, []string{"config/policies/guards.yaml"})...)
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: w.Meta("busy"), Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}, MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "gameserver-idle", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
			{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
	}}
	budget.Labels, budget.Annotations = map[string]string{v1alpha1.GuardKey: "true"}, map[string]string{v1alpha1.GuardMaxDurationKey: longest}
	w.Create(budget)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), budget) }) // The pods are deleted afterwards.
	w.released(pod, false)
	return budget
}

// released waits until the pod has the label of the manager or not, and can be deleted or not.
func (w *world) released(pod string, want bool) {
	w.Helper()
	w.Until(fmt.Sprintf("pod %s is released: %t", pod, want), func() error {
		stored := w.stored(pod)
		label, err := stored.Labels[v1alpha1.GuardExemptKey], w.Client.Delete(w.Context(), stored, client.DryRunAll)
		deleted := err == nil
		refused := err != nil && strings.Contains(err.Error(), "PodDisruptionBudget busy guards it")
		return await.ErrorIf((label == "max-duration") != want || deleted != want || refused == want, "label %q, deletion: %v", label, err)
	})
}

// TestGuardReachesItsMaximum has a busy pod that reaches the maximum of its guard in some seconds.
func TestGuardReachesItsMaximum(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutManager(t, e)
	registry := prometheus.NewRegistry()
	program.StartManager(t, manager.Options{Config: e.Component(t, manager.Name), Registry: registry})
	t.Cleanup(w.clean)
	pod := w.pod("a", w.node("guarded"))
	pod.Status.StartTime = new(metav1.NewTime(time.Now().Add(10*time.Second - time.Hour)))
	w.UpdateStatus(pod)
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.planned("guarded", "a/game#Idle")
	w.report("guarded", states{"game#Idle": failed})
	w.marked("a", "label gameserver-idle=false", "annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False")
	budget := w.guarded("a", "1h")

	w.released("a", true)
	if early := time.Until(pod.Status.StartTime.Add(time.Hour)); early > 0 {
		t.Errorf("pod is released %s before the limit", early)
	}
	w.Until("event and metric", func() error {
		events := w.Events(v1alpha1.EventReasonGuardReleased)
		got, err := series(registry, "seamark_manager_guard_releases_total")
		want := len(events) == 1 && strings.Contains(events[0].Message, "PodDisruptionBudget busy has guarded the pod since ") && err == nil && slices.Equal(got, []string{": 1"})
		return await.ErrorIf(!want, "%v, metric %v, %v", events, got, err)
	})
	w.unchanged("a", "label gameserver-idle=false", "label seamark.dev/guard-exempt=max-duration",
		"annotation controller.kubernetes.io/pod-deletion-cost=10", "condition game.io/idle=False")

	// A longer maximum, and an invalid one that the policy does not see, guard the pod again.
	w.Patch(budget, `{"metadata": {"annotations": {"seamark.dev/guard-max-duration": "2h"}}}`)
	w.released("a", false)
	w.Patch(budget, `{"metadata": {"annotations": {"seamark.dev/guard-max-duration": "1h"}}}`)
	w.released("a", true)
	// Not guarded any more.
	w.report("guarded", states{"game#Idle": succeeded})
	w.Until("the label is gone", func() error {
		return await.ErrorIf(w.stored("a").Labels[v1alpha1.GuardExemptKey] != "", "%v", w.stored("a").Labels)
	})
	w.report("guarded", states{"game#Idle": failed})
	w.released("a", true)
	w.Delete(budget)
	w.Until("the label is gone with the guard", func() error {
		return await.ErrorIf(w.stored("a").Labels[v1alpha1.GuardExemptKey] != "", "%v", w.stored("a").Labels)
	})
}

// TestManagerWithoutRightsOnBudgets has the role of an earlier version.
func TestManagerWithoutRightsOnBudgets(t *testing.T) {
	e := servers.Parallel(t)
	w := newWorldWithoutManager(t, e)
	program.StartManager(t, manager.Options{Config: e.ComponentWithoutBudgets(t, manager.Name), Logger: program.Logger()})
	t.Cleanup(w.clean)
	w.pod("a", w.node("older"))
	w.marker(builders.Marker(w.Namespace, "game").Probe(documented()))
	w.planned("older", "a/game#Idle")
}
