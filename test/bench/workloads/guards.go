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
	"github.com/seamark-dev/seamark/test/bench/harness"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// guardStage is what protects pods while others are deleted and updated.
type guardStage struct {
	// name is that of rows.
	name string
	// guards and quick are the numbers of guards in a full and in a quick run. Those of earlier stages stay.
	guards, quick int
	// own means that they are in the namespace of the pods that are measured.
	own bool
}

// guardStages returns the stages after that without the policies of guards.
func guardStages() []guardStage {
	return []guardStage{
		{name: "no guards"},
		{name: "1 guard in another namespace", guards: 1, quick: 1},
		{name: "100 guards in another namespace", guards: 100, quick: 2},
		{name: "1,000 guards in another namespace", guards: 1000, quick: 3},
		{name: "16 guards in the namespace", guards: 16, quick: 2, own: true},
	}
}

// guardOperations are those that guards of the label seamark.dev/guard-update can refuse.
func guardOperations() []string { return []string{"DELETE", "UPDATE"} }

func guardRow(operation string, s guardStage) string {
	return fmt.Sprintf("API server's processor time per %s of a pod, %s", operation, s.name)
}

func guardRows() (rows []string) {
	for _, s := range guardStages() {
		for _, operation := range guardOperations() {
			rows = append(rows, guardRow(operation, s))
		}
	}
	return rows
}

// policies is the plugin that evaluates admission policies for a request.
const policies = "k8s.io/apiserver/pkg/admission/plugin/policy/generic.(*Plugin["

// guardedCluster is an API server with pods that no guard selects. Guards are in the same namespace, or in the other one.
type guardedCluster struct {
	*bystander
	*harness.Bench
	other string
	// guards is the number of guards in the other namespace.
	guards int
}

// measureGuards measures deletions and updates of pods that no guard selects. What guards add is so little that only a profile shows
// it, of dry runs: it is added to what these operations cost without the policies of guards.
func measureGuards(b *harness.Bench) harness.Output {
	server := b.Server()
	c := &guardedCluster{
		bystander: &bystander{server: server, namespace: server.Namespace(b.T), pods: harness.Pick(b, 2000, 20)}, Bench: b, other: server.Namespace(b.T),
	}
	c.bind(false)
	floors := c.written()
	c.createRunning()
	without := c.played()
	c.bind(true)
	var out harness.Output
	count := int64(0)
	for _, stage := range guardStages() {
		c.protect(stage)
		played := c.played()
		for _, operation := range guardOperations() {
			profile, floor := played[operation], harness.Positive(floors[operation])
			added, budget := profile.Within-without[operation].Within, harness.RatioAtMost(foreignBudget)
			if stage.own {
				added, budget = profile.PerCall-without[operation].PerCall, nil
			}
			count += profile.Samples
			out.Results = append(out.Results, harness.Result{
				Name: guardRow(operation, stage), Unit: "µs", Value: floor + float64(max(0, added).Nanoseconds())/1000, Floor: floor,
				FloorName: "no policies of guards", Budget: budget,
			})
		}
	}
	out.Notes = []string{fmt.Sprintf(
		"The floor is that of %d operations. What guards of another namespace add is the time of admission policies in dry runs, by a profile of "+
			"%d samples on average of %s, less that without the policies of guards. What those of the namespace add is all of the processor "+
			"time of dry runs, less that without the policies. The guards also protect from updates.",
		c.pods, count/int64(len(guardRows())), c.period(),
	)}
	return out
}

// createRunning creates the pods. Guards ignore others than running ones.
func (c *guardedCluster) createRunning() {
	c.Helper()
	c.create(c.Bench, "pod", c.pods)
	c.Each(c.pods, harness.Clients, func(ctx context.Context, i int) error { return c.run(ctx, c.pod(i)) })
}

// written creates pods, and returns the processor time per update and deletion of them in microseconds.
func (c *guardedCluster) written() map[string]float64 {
	c.Helper()
	c.createRunning()
	measured := func(work func(ctx context.Context, i int) error) float64 {
		used := c.server.Counted(func() { c.Each(c.pods, harness.Clients, work) })
		return float64(used.CPU.Microseconds()) / float64(c.pods)
	}
	return map[string]float64{
		"UPDATE": measured(func(ctx context.Context, i int) error { return c.server.Client.Patch(ctx, c.pod(i), labelled()) }),
		"DELETE": measured(func(ctx context.Context, i int) error {
			return c.server.Client.Delete(ctx, c.pod(i), client.GracePeriodSeconds(0))
		}),
	}
}

// pod returns one of the pods.
func (c *guardedCluster) pod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: fmt.Sprintf("pod-%d", i%c.pods)}}
}

// labelled is an update of a pod.
func labelled() client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"mark":"true"}}}`))
}

// bind binds the policies of guards, or removes the bindings, and waits until that has effect.
func (c *guardedCluster) bind(bound bool) {
	c.Helper()
	objects, err := env.ReadManifests("config/policies/guards.yaml")
	c.Must(err)
	for _, object := range objects {
		// The binding of seamark-guard-parameters stays: without it, the API server does not read new guards.
		if object.GetKind() != "ValidatingAdmissionPolicyBinding" || object.GetName() == "seamark-guard-parameters" {
			continue
		}
		if bound {
			c.server.Apply(c.T, object)
		} else {
			c.Must(c.server.Client.Delete(c.Context(), object))
		}
	}
	c.await(c.server.Namespace(c.T), bound)
}

// await waits until a guard of the namespace has effect, or none has, and deletes it.
func (c *guardedCluster) await(namespace string, bound bool) {
	c.Helper()
	guard := newGuard(namespace, "awaited")
	c.Must(c.server.Client.Create(c.Context(), guard))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "guarded", Labels: map[string]string{"app": "guarded"}},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	c.Must(c.server.Client.Create(c.Context(), pod))
	c.Must(c.run(c.Context(), pod))
	c.Until("guards have effect, or none has", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(c.server.Client.Delete(ctx, pod, client.DryRunAll)) == bound, nil
	})
	c.Must(c.server.Client.Delete(c.Context(), guard))
}

// run sets the phase of a pod: guards ignore others than running ones.
func (c *guardedCluster) run(ctx context.Context, pod *corev1.Pod) error {
	running := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`))
	return c.server.Client.Status().Patch(ctx, pod, running) //nolint:wrapcheck // The caller ends the measure.
}

// protect creates the guards of the stage, and waits until they have effect.
func (c *guardedCluster) protect(stage guardStage) {
	c.Helper()
	if stage.guards == 0 {
		return
	}
	namespace, first := c.other, c.guards
	if stage.own {
		namespace, first = c.namespace, 0
	}
	last := harness.Pick(c.Bench, stage.guards, stage.quick)
	c.Each(last-first, harness.Clients, func(ctx context.Context, i int) error {
		return c.server.Client.Create(ctx, newGuard(namespace, fmt.Sprintf("guard-%d", first+i)))
	})
	if !stage.own {
		c.guards = last
	}
	c.await(c.server.Namespace(c.T), true)
}

// newGuard returns a guard of pods that are not idle.
func newGuard(namespace, name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.GuardKey: "true", v1alpha1.GuardUpdateKey: "true"},
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
	}
}

// period is how long each operation of a stage is repeated.
func (c *guardedCluster) period() time.Duration {
	return harness.Pick(c.Bench, 30*time.Second, time.Second)
}

// played measures dry runs by operation.
func (c *guardedCluster) played() map[string]harness.Profile {
	c.Helper()
	return map[string]harness.Profile{
		"DELETE": c.server.Profile(c.period(), policies, func(ctx context.Context, i int) error {
			return c.server.Client.Delete(ctx, c.pod(i), client.DryRunAll, client.GracePeriodSeconds(0))
		}),
		"UPDATE": c.server.Profile(c.period(), policies, func(ctx context.Context, i int) error {
			return c.server.Client.Patch(ctx, c.pod(i), labelled(), client.DryRunAll)
		}),
	}
}
