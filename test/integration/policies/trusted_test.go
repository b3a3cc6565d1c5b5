// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestTrustedAuthors writes a marker with exec as OpenKruiseGame's controller does, with those of its rights that
// matter: it may create and patch pods, and has no pods/exec.
func TestTrustedAuthors(t *testing.T) {
	t.Parallel()
	const label, policy = "seamark.dev/test-trusted", "trusted-marker-author"
	installForAuthors(t)
	_, strict := namespaces(t)
	trusting := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{label: "true", denyLabel: "false"}}}
	expect.NoError(t, server.Client.Create(t.Context(), trusting))
	game := env.ServiceAccountSubject("kruise-game-system", "kruise-game-controller-manager")
	c, _ := clientOf(t, server, server.ServiceAccount(t, game.Namespace, game.Name, nil))
	other, _ := clientOf(t, server, server.ServiceAccount(t, game.Namespace, "other", nil))
	rights := []rbacv1.PolicyRule{
		{APIGroups: []string{"apps.kruise.io"}, Resources: []string{"podprobemarkers", "statefulsets"}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
	}
	for _, namespace := range []string{strict, trusting.Name} {
		server.Grant(t, namespace, game, rights...)
		server.Grant(t, namespace, env.ServiceAccountSubject(game.Namespace, "other"), rights...)
	}
	manifests := env.Manifests(t, []string{"config/policies/marker-author.yaml"})
	for _, object := range manifests {
		object.SetName(policy)
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			conditions := []any{map[string]any{
				"name": "not-trusted", "expression": `!(request.userInfo.username in ["system:serviceaccount:` + game.Namespace + ":" + game.Name + `"])`,
			}}
			expect.NoError(t, unstructured.SetNestedSlice(object.Object, conditions, "spec", "matchConditions"))
		} else {
			object.Object["spec"] = map[string]any{
				"policyName": policy, "validationActions": []any{"Deny"},
				"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{label: "true"}}},
			}
		}
	}
	server.Apply(t, manifests...)
	// The policy is in effect for the last account when it is for the one before.
	for _, test := range []struct {
		name      string
		as        client.Client
		namespace string
		want      string
	}{
		{"without the entry", c, strict, noExec("system:serviceaccount:"+game.Namespace+":"+game.Name, strict, "busy")},
		{"another account", other, trusting.Name, "cannot create pods/exec"},
		{"with the entry", c, trusting.Name, ""},
	} {
		eventually(t, test.name, func(ctx context.Context) error {
			return rejectedWith(test.want)(test.as.Create(ctx, markerIn(test.namespace, execProbe()), client.DryRunAll))
		})
	}
}
