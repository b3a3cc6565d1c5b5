// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// guards is a namespace with a guard of pods that are not idle.
type guards struct {
	client.Client
	namespace string
	budget    *policyv1.PodDisruptionBudget
}

// newGuards installs the policies, and creates the guard. The policies are in effect when it returns.
func newGuards(t *testing.T) *guards {
	t.Helper()
	server.Apply(t, env.Manifests(t, []string{"config/policies/guards.yaml"})...)
	g := &guards{Client: server.Client, namespace: server.Namespace(t)}
	none := intstr.FromInt32(0)
	g.budget = &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "busy-games", Labels: map[string]string{v1alpha1.GuardKey: "true", v1alpha1.GuardUpdateKey: "true"}},
		Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "game"}, MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "gameserver-idle", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
				{Key: v1alpha1.GuardExemptKey, Operator: metav1.LabelSelectorOpDoesNotExist},
			},
		}},
	}
	expect.NoError(t, g.Create(t.Context(), g.budget))
	probe := g.pod(t, corev1.PodRunning)
	eventually(t, "the policies are in effect", func(ctx context.Context) error {
		changed := probe.DeepCopy()
		changed.Spec.Containers[0].Image = "other"
		return errors.Join(rejectedWith("guards")(g.Delete(ctx, probe, client.DryRunAll)), rejectedWith("guards")(g.Update(ctx, changed, client.DryRunAll)))
	})
	return g
}

// pod creates a busy game in the phase.
func (g *guards) pod(t *testing.T, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, GenerateName: "game-", Labels: map[string]string{"app": "game"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "game:1", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi")},
			},
			ResizePolicy: []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
			},
		}}},
	}
	expect.NoError(t, g.Create(t.Context(), pod))
	pod.Status.Phase = phase
	expect.NoError(t, g.Status().Update(t.Context(), pod))
	return pod
}

// patch applies a merge patch.
func (g *guards) patch(t *testing.T, object client.Object, patch string) {
	t.Helper()
	expect.NoError(t, g.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// TestGuardedPods deletes pods in ways that a guard refuses, and others.
func TestGuardedPods(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	const refused = "PodDisruptionBudget busy-games guards it while its labels match app=game, gameserver-idle NotIn (true), seamark.dev/guard-exempt DoesNotExist. "
	for name, test := range map[string]struct {
		phase   corev1.PodPhase
		patch   string
		options []client.DeleteOption
		want    string
	}{
		"running":                 {corev1.PodRunning, "", nil, refused},
		"forced":                  {corev1.PodRunning, "", []client.DeleteOption{client.GracePeriodSeconds(0)}, refused},
		"not ready":               {corev1.PodUnknown, "", nil, refused},
		"busy":                    {corev1.PodRunning, `{"metadata": {"labels": {"gameserver-idle": "false"}}}`, nil, refused},
		"idle":                    {corev1.PodRunning, `{"metadata": {"labels": {"gameserver-idle": "true"}}}`, nil, ""},
		"of another selector":     {corev1.PodRunning, `{"metadata": {"labels": {"app": "web"}}}`, nil, ""},
		"exempt":                  {corev1.PodRunning, `{"metadata": {"labels": {"seamark.dev/guard-exempt": ""}}}`, nil, ""},
		"pending":                 {corev1.PodPending, "", nil, ""},
		"succeeded":               {corev1.PodSucceeded, "", nil, ""},
		"failed":                  {corev1.PodFailed, "", nil, ""},
		"of another precondition": {corev1.PodRunning, "", []client.DeleteOption{client.Preconditions{UID: new(types.UID("x"))}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := g.pod(t, test.phase)
			if test.patch != "" {
				g.patch(t, pod, test.patch)
			}
			err := g.Delete(t.Context(), pod, test.options...)
			if strings.HasPrefix(name, "of another precondition") {
				if !apierrors.IsConflict(err) {
					t.Errorf("error %v, want a conflict", err)
				}
				return
			}
			expect.Success(t, rejectedWith(test.want)(err))
		})
	}
	t.Run("collection", func(t *testing.T) {
		t.Parallel()
		pod := g.pod(t, corev1.PodRunning)
		g.patch(t, pod, `{"metadata": {"labels": {"collected": "yes"}}}`)
		all := []client.DeleteAllOfOption{client.InNamespace(g.namespace), client.MatchingLabels{"collected": "yes"}}
		expect.Success(t, rejectedWith(refused)(g.DeleteAllOf(t.Context(), &corev1.Pod{}, all...)))
		g.patch(t, pod, `{"metadata": {"labels": {"gameserver-idle": "true"}}}`)
		expect.NoError(t, g.DeleteAllOf(t.Context(), &corev1.Pod{}, all...))
	})
}

// TestUpdatesOfGuardedPods changes a guarded pod.
func TestUpdatesOfGuardedPods(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	const refused = "cannot be updated: PodDisruptionBudget busy-games guards it"
	container := func(fields string) string { return `{"spec": {"containers": [{"name": "main", ` + fields + `}]}}` }
	for name, test := range map[string]struct{ subresource, patch, want string }{
		"image":                       {"", container(`"image": "game:2"`), refused},
		"deadline":                    {"", `{"spec": {"activeDeadlineSeconds": 1}}`, refused},
		"label":                       {"", `{"metadata": {"labels": {"x": "y"}}}`, ""},
		"idle, and the image":         {"", `{"metadata": {"labels": {"gameserver-idle": "true"}}, ` + container(`"image": "game:2"`)[1:], refused},
		"exempt, and the image":       {"", `{"metadata": {"labels": {"seamark.dev/guard-exempt": ""}}, ` + container(`"image": "game:2"`)[1:], refused},
		"resize with a restart":       {"resize", container(`"resources": {"requests": {"memory": "200Mi"}}`), refused},
		"resize without a restart":    {"resize", container(`"resources": {"requests": {"cpu": "200m"}}`), ""},
		"resize to the same quantity": {"resize", container(`"resources": {"requests": {"cpu": "0.2", "memory": "100Mi"}}`), ""},
		"condition":                   {"status", `{"status": {"conditions": [{"type": "game.io/x", "status": "True"}]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, patch := g.pod(t, corev1.PodRunning), client.RawPatch(types.StrategicMergePatchType, []byte(test.patch))
			var err error
			if test.subresource == "" {
				err = g.Patch(t.Context(), pod, patch)
			} else {
				err = g.SubResource(test.subresource).Patch(t.Context(), pod, patch)
			}
			expect.Success(t, rejectedWith(test.want)(err))
		})
	}
}

// TestLabelsOfGuards removes the labels of a guard, one after the other.
func TestLabelsOfGuards(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	pod := g.pod(t, corev1.PodRunning)
	g.patch(t, g.budget, `{"metadata": {"labels": {"seamark.dev/guard-update": null}}}`)
	eventually(t, "the image can be changed", func(ctx context.Context) error {
		return g.Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"containers": [{"name": "main", "image": "game:2"}]}}`)))
	})
	expect.Success(t, rejectedWith("guards")(g.Delete(t.Context(), pod)))
	g.patch(t, g.budget, `{"metadata": {"labels": {"seamark.dev/guard": null}}}`)
	eventually(t, "the pod can be deleted", func(ctx context.Context) error { return g.Delete(ctx, pod) })
}

// TestUsersWhomGuardsDoNotBind deletes a guarded pod as users and controllers of Kubernetes.
func TestUsersWhomGuardsDoNotBind(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	controller := func(name string) string { return "system:serviceaccount:kube-system:" + name }
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}}
	for name, refused := range map[string]bool{
		"system:node:node-1":                                    false,
		"system:kube-scheduler":                                 false,
		"system:kube-controller-manager":                        false,
		controller("generic-garbage-collector"):                 false,
		controller("namespace-controller"):                      false,
		controller("pod-garbage-collector"):                     false,
		controller("node-controller"):                           false,
		controller("taint-eviction-controller"):                 false,
		controller("replicaset-controller"):                     true,
		"system:serviceaccount:games:generic-garbage-collector": true,
		"system:nodes":                                          true,
		"jane":                                                  true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := g.pod(t, corev1.PodRunning)
			server.Grant(t, g.namespace, env.UserSubject(name), rule)
			want := ""
			if refused {
				want = "guards"
			}
			c, _ := clientOf(t, server, server.User(t, name))
			eventually(t, "the deletion", func(ctx context.Context) error { return rejectedWith(want)(c.Delete(ctx, pod, client.DryRunAll)) })
		})
	}
}

// TestMaxDurationOfGuards checks that the API server refuses the values that the manager ignores, and no others.
func TestMaxDurationOfGuards(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	for i, value := range []string{
		"1m", "60s", "2h", "1h30m", "0h1m0s", "720h", "43200m", "2592000s",
		"", "0", "59s", "720h1s", "999h99999m9999999s", "-2h", "2", "1d", "1.5h", "1h ", "30m1h", "1000h", "2H", "１h", "2h\n", "1m\x1b[2J", strings.Repeat("1h", 1<<15),
	} {
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: fmt.Sprint("limited-", i), Labels: g.budget.Labels, Annotations: map[string]string{"a": "b"}},
			Spec:       g.budget.Spec,
		}
		expect.NoError(t, g.Create(t.Context(), budget))
		budget.Annotations[v1alpha1.GuardMaxDurationKey] = value
		_, want := guard.MaxDuration(budget)
		eventually(t, fmt.Sprintf("the answer to %.20q", value), func(ctx context.Context) error {
			err := g.Update(ctx, budget.DeepCopy(), client.DryRunAll)
			switch {
			case (err == nil) != (want == nil):
				return fmt.Errorf("error %v, the manager has %w", err, want) //nolint:errorlint // It may be nil.
			case err != nil && (!strings.Contains(err.Error(), "metadata.annotations[seamark.dev/guard-max-duration]: ") ||
				!strings.Contains(err.Error(), "must be hours, minutes and seconds such as 2h or 1h30m, from 1m to 720h")):
				return err
			}
			return nil
		})
	}
}

// TestBoundsOfGuards creates the largest guard, and larger ones.
func TestBoundsOfGuards(t *testing.T) {
	t.Parallel()
	g := newGuards(t)
	largest := g.budget.DeepCopy()
	largest.ResourceVersion, largest.Name, largest.Spec.Selector = "", "largest", &metav1.LabelSelector{}
	pod := g.pod(t, corev1.PodRunning)
	pod.Labels = map[string]string{}
	for i := range 32 {
		key := fmt.Sprintf("%s/%s-%02d", strings.Repeat("p", 253), strings.Repeat("n", 60), i)
		pod.Labels[key] = strings.Repeat("v", 63)
		requirement := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn}
		for j := range 8 {
			requirement.Values = append(requirement.Values, fmt.Sprintf("%s-%02d", strings.Repeat("w", 60), j))
		}
		requirement.Values[7] = pod.Labels[key]
		largest.Spec.Selector.MatchExpressions = append(largest.Spec.Selector.MatchExpressions, requirement)
	}
	expect.NoError(t, g.Update(t.Context(), pod))
	for name, test := range map[string]struct {
		edit func(b *policyv1.PodDisruptionBudget)
		want string
	}{
		"value of the label": {func(b *policyv1.PodDisruptionBudget) { b.Labels[v1alpha1.GuardKey] = "True" }, `metadata.labels[seamark.dev/guard]: must be "true"`},
		"value of the other label": {
			func(b *policyv1.PodDisruptionBudget) { b.Labels[v1alpha1.GuardUpdateKey] = "yes" }, `metadata.labels[seamark.dev/guard-update]: must be "true"`,
		},
		"unready pods": {
			func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) },
			"spec.unhealthyPodEvictionPolicy: must not be AlwaysAllow",
		},
		"numbers": {
			func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(1)) }, "spec: must have maxUnavailable 0",
		},
		"other numbers": {
			func(b *policyv1.PodDisruptionBudget) {
				b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, new(intstr.FromInt32(5))
			},
			"spec: must have maxUnavailable 0",
		},
		"no numbers":  {func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = nil }, "spec: must have maxUnavailable 0"},
		"expressions": {func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector.MatchLabels = map[string]string{"a": "b"} }, "at most 32 labels and expressions"},
		"values": {func(b *policyv1.PodDisruptionBudget) {
			b.Spec.Selector.MatchExpressions[0].Values = append(b.Spec.Selector.MatchExpressions[0].Values, "v")
		}, "at most 256 values"},
	} {
		t.Run(name, func(t *testing.T) {
			larger := largest.DeepCopy()
			test.edit(larger)
			invalid := func(err error) error {
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
					return fmt.Errorf("error %v, want one that contains %q", err, test.want) //nolint:errorlint // It may be nil.
				}
				return nil
			}
			eventually(t, "it is refused", func(ctx context.Context) error { return invalid(g.Create(ctx, larger, client.DryRunAll)) })
			labelled := larger.Labels
			larger.Labels, larger.Name = nil, "larger-"+strings.ReplaceAll(name, " ", "-")
			expect.NoError(t, g.Create(t.Context(), larger))
			larger.Labels = labelled
			expect.Success(t, invalid(g.Update(t.Context(), larger)))
		})
	}
	expect.NoError(t, g.Create(t.Context(), largest))
	// The names of all labels are more than a message may have.
	eventually(t, "the pod is guarded", func(ctx context.Context) error {
		return rejectedWith("a PodDisruptionBudget guards the pod while its labels match")(g.Delete(ctx, pod, client.DryRunAll))
	})
}
