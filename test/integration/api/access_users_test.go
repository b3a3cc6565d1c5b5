// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestViewersOfStates checks what users can do who are bound to the roles for viewers, and that these
// roles contain nothing else.
func TestViewersOfStates(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	server.GrantStates(t, "viewer-of-states")
	viewer := userClient(t, "viewer-of-states")
	states := join(basic(),
		rightsOf("", "nodes", "get", "list", "watch"),
		rightsOf("apps.kruise.io", "nodepodprobes", "get", "list", "watch"),
		rightsOf("seamark.dev", "probereports", "get", "list", "watch"),
	)
	if diff := awaitRights(t, viewer, g.pod.Namespace, states); diff != "" {
		t.Errorf("rights in a namespace (-want +got):\n%s", diff)
	}
	system := join(states,
		rightsOf("", "pods", "get", "list", "watch"),
		rightsOf("coordination.k8s.io", "leases/seamark-manager", "get"),
	)
	if diff := awaitRights(t, viewer, env.SystemNamespace, system); diff != "" {
		t.Errorf("rights in the namespace of Seamark (-want +got):\n%s", diff)
	}
	inNamespace := func(list client.ObjectList) func(context.Context, client.WithWatch, target) error {
		return func(ctx context.Context, c client.WithWatch, g target) error {
			return c.List(ctx, list, client.InNamespace(g.pod.Namespace))
		}
	}
	checkActions(t, viewer, g, map[string]action{
		"list plans":            allowed(list(&v1alpha1.NodePodProbeList{})),
		"watch plans":           allowed(watch(&v1alpha1.NodePodProbeList{})),
		"list reports":          allowed(list(&seamarkv1alpha1.ProbeReportList{})),
		"list nodes":            allowed(list(&corev1.NodeList{})),
		"list pods":             forbidden(inNamespace(&corev1.PodList{})),
		"list markers":          forbidden(inNamespace(&v1alpha1.PodProbeMarkerList{})),
		"list events":           forbidden(inNamespace(&corev1.EventList{})),
		"list secrets":          forbidden(inNamespace(&corev1.SecretList{})),
		"patch a plan":          forbidden(patchPlan),
		"write a plan's status": forbidden(patchPlanStatus),
		"patch a marker":        forbidden(patchMarker),
		"list secrets of Seamark": forbidden(func(ctx context.Context, c client.WithWatch, _ target) error {
			return c.List(ctx, &corev1.SecretList{}, client.InNamespace(env.SystemNamespace))
		}),
	})
}

// TestViewersOfMarkers checks what the part of the role view that Seamark installs allows in a
// namespace.
func TestViewersOfMarkers(t *testing.T) {
	t.Parallel()
	g, other := newTarget(t), newTarget(t)
	server.ApplyUserRoles(t)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.pod.Namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "seamark-view"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "viewer-of-markers"}},
	}
	if err := server.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	viewer := userClient(t, "viewer-of-markers")
	for namespace, want := range map[string]rights{
		g.pod.Namespace:     join(basic(), rightsOf("apps.kruise.io", "podprobemarkers", "get", "list", "watch")),
		other.pod.Namespace: basic(),
	} {
		if diff := awaitRights(t, viewer, namespace, want); diff != "" {
			t.Errorf("rights in namespace %s (-want +got):\n%s", namespace, diff)
		}
	}
	checkActions(t, viewer, g, map[string]action{
		"list plans":     forbidden(list(&v1alpha1.NodePodProbeList{})),
		"list reports":   forbidden(list(&seamarkv1alpha1.ProbeReportList{})),
		"patch a marker": forbidden(patchMarker),
	})
}

// userClient returns a client of a user.
func userClient(t *testing.T, name string) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(server.User(t, name), client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkActions checks which requests of a user are allowed.
func checkActions(t *testing.T, user client.WithWatch, g target, actions map[string]action) {
	t.Helper()
	for name, a := range actions {
		t.Run(name, func(t *testing.T) {
			err := a.do(t.Context(), user, g)
			switch {
			case a.allowed && err != nil:
				t.Errorf("%v, want it allowed", err)
			case !a.allowed && !apierrors.IsForbidden(err):
				t.Errorf("%v, want it forbidden", err)
			}
		})
	}
}
