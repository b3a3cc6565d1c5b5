// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestViewersOfStates checks what users can do who are bound to the roles for viewers, and that these
// roles contain nothing else.
func TestViewersOfStates(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	server.GrantStates(t, "viewer-of-states")
	viewer := userClient(t, "viewer-of-states")
	states := join(basic(),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "nodepodprobes", "get", "list", "watch"),
		rightsOf("seamark.dev", "probeplans", "get", "list", "watch"),
		rightsOf("seamark.dev", "probereports", "get", "list", "watch"),
	)
	if diff := awaitRights(t, viewer, namespace, states); diff != "" {
		t.Errorf("rights in a namespace (-want +got):\n%s", diff)
	}
	system := join(states,
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("coordination.k8s.io", "leases/seamark-manager", "get"),
		rightsOf("coordination.k8s.io", "leases/seamark-workloads", "get"),
	)
	if diff := awaitRights(t, viewer, env.SystemNamespace, system); diff != "" {
		t.Errorf("rights in the namespace of Seamark (-want +got):\n%s", diff)
	}
}

// TestViewersOfMarkers checks what the part of the role view that Seamark installs allows in a
// namespace.
func TestViewersOfMarkers(t *testing.T) {
	t.Parallel()
	viewed, other := server.Namespace(t), server.Namespace(t)
	server.ApplyUserRoles(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: viewed, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "seamark-view"},
		Subjects:   []rbacv1.Subject{env.UserSubject("viewer-of-markers")},
	}
	expect.NoError(t, server.Client.Create(t.Context(), binding))
	viewer := userClient(t, "viewer-of-markers")
	for namespace, want := range map[string]rights{
		viewed: join(basic(), rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch")),
		other:  basic(),
	} {
		if diff := awaitRights(t, viewer, namespace, want); diff != "" {
			t.Errorf("rights in namespace %s (-want +got):\n%s", namespace, diff)
		}
	}
}

func userClient(t *testing.T, name string) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(server.User(t, name), client.Options{Scheme: server.Scheme})
	expect.NoError(t, err)
	return c
}
