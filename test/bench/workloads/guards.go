// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

// guardedCluster is an API server with guards in one namespace. The pods that are measured are in another one, or in the same.
type guardedCluster struct {
	bystander
	// guards and quick are the numbers of guards in a full and in a quick run.
	guards, quick int
	own           bool
	// deletion and update are the times per write in microseconds, one of each round.
	deletion, update []float64
}

// name names the cluster in rows.
func (c *guardedCluster) name() string {
	if c.own {
		return fmt.Sprintf("%d guards in the namespace", c.guards)
	}
	return text.Count(c.guards, "guard") + " in another namespace"
}

// guardedClusters returns the clusters of the measure. The first one is the floor.
func guardedClusters() []*guardedCluster {
	return []*guardedCluster{{}, {guards: 1, quick: 1}, {guards: 100, quick: 2}, {guards: 1000, quick: 3}, {guards: 16, quick: 2, own: true}}
}

func guardRow(operation string, c *guardedCluster) string {
	return fmt.Sprintf("API server's processor time per %s of a pod, %s", operation, c.name())
}

func guardRows() (rows []string) {
	for _, c := range guardedClusters()[1:] {
		rows = append(rows, guardRow("DELETE", c), guardRow("UPDATE", c))
	}
	return rows
}

// measureGuards measures deletions and updates of pods that no guard selects. All clusters have all policies, and are measured in
// turn. No program runs.
func measureGuards(b *harness.Bench) harness.Output {
	clusters := guardedClusters()
	for _, c := range clusters {
		c.server = b.Server()
		c.openGuards(b)
	}
	rounds := harness.Pick(b, 9, 1)
	for round := range rounds {
		for n := range clusters {
			clusters[(n+round)%len(clusters)].playGuards(b, round)
		}
	}
	floor := clusters[0]
	var out harness.Output
	row := func(c *guardedCluster, operation string, values, floors []float64) {
		result := harness.Result{
			Name: guardRow(operation, c), Value: middle(values), Unit: "µs", Floor: harness.Positive(middle(floors)), FloorName: "no guards",
			Noise: halfRange(values),
		}
		if !c.own {
			result.Budget = harness.RatioAtMost(foreignBudget)
		}
		out.Results = append(out.Results, result)
	}
	for _, c := range clusters[1:] {
		row(c, "DELETE", c.deletion, floor.deletion)
		row(c, "UPDATE", c.update, floor.update)
	}
	out.Notes = []string{fmt.Sprintf(
		"Medians of %d rounds of all clusters in turn, with %d pods per round that no guard selects. The guards also protect from updates.", rounds, floor.pods,
	)}
	return out
}

// openGuards creates the guards and a pod that all of them select, and waits until it cannot be deleted.
func (c *guardedCluster) openGuards(b *harness.Bench) {
	b.Helper()
	c.pods, c.namespace = harness.Pick(b, 500, 20), c.server.Namespace(b.T)
	guarded := c.namespace
	if !c.own {
		guarded = c.server.Namespace(b.T)
	}
	b.Each(harness.Pick(b, c.guards, c.quick), harness.Clients, func(ctx context.Context, i int) error {
		return c.server.Client.Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: guarded, Name: fmt.Sprintf("guard-%d", i),
				Labels: map[string]string{v1alpha1.GuardKey: "true", v1alpha1.GuardUpdateKey: "true"},
			},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &intstr.IntOrString{},
				Selector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"app": "guarded"},
					MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: "idle", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
						{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist},
					},
				},
			},
		})
	})
	if c.guards == 0 {
		return
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: guarded, Name: "guarded", Labels: map[string]string{"app": "guarded"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	b.Must(c.server.Client.Create(b.Context(), pod))
	running := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))
	b.Must(c.server.Client.Status().Patch(b.Context(), pod, running))
	b.Until("guards have effect", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(c.server.Client.Delete(ctx, pod, client.DryRunAll)), nil
	})
}

// playGuards measures one round. New pods are running, because guards ignore others.
func (c *guardedCluster) playGuards(b *harness.Bench, round int) {
	b.Helper()
	prefix := fmt.Sprintf("round-%d", round)
	c.create(b, prefix, c.pods)
	pod := func(i int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprintf("%s-%d", prefix, i)}}
	}
	measured := func(work func(ctx context.Context, i int) error) float64 {
		used := c.server.Counted(func() { b.Each(c.pods, harness.Clients, work) })
		return float64(used.CPU.Microseconds()) / float64(c.pods)
	}
	running := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))
	b.Each(c.pods, harness.Clients, func(ctx context.Context, i int) error { return c.server.Client.Status().Patch(ctx, pod(i), running) })
	labelled := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mark":"true"}}}`))
	c.update = append(c.update, measured(func(ctx context.Context, i int) error { return c.server.Client.Patch(ctx, pod(i), labelled) }))
	c.deletion = append(c.deletion, measured(func(ctx context.Context, i int) error {
		return c.server.Client.Delete(ctx, pod(i), client.GracePeriodSeconds(0))
	}))
}
