// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package uninstall_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// TestUninstallStopsWorkloadsFirst checks that no mark is removed while seamark-workloads runs,
// which would scale and update workloads based on the remaining marks, and that CloneSets and their
// pods are kept.
func TestUninstallStopsWorkloadsFirst(t *testing.T) {
	t.Parallel()
	e := env.Start(t)
	config := identity(t, e)
	namespace := e.Namespace(t)
	createDeployment(t, e, workloads, "w")
	program := plain(builders.Pod(system, "workloads-1").Label("a", "w"))
	expect.NoError(t, e.Client.Create(t.Context(), program))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: workloads}}
	expect.NoError(t, e.Client.Create(t.Context(), lease))
	binding := env.WorkloadsBinding(namespace)
	binding.Labels["app.kubernetes.io/managed-by"] = "seamark-manager"
	expect.NoError(t, e.Client.Create(t.Context(), binding))
	set := cloneSet(namespace)
	expect.NoError(t, e.Client.Create(t.Context(), set))
	owned := builders.Pod(namespace, "set-abcde").Label("app", "set")
	createMarked(t, e, owned, mark.Marks{mark.Label("busy"): {Text: "true"}})
	pod := &corev1.Pod{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "set-abcde"}, pod))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion().WithKind("CloneSet"))}
	expect.NoError(t, e.Client.Update(t.Context(), pod))

	waits(t, e, config, namespace, pod.Name, "wait for pod seamark-system/workloads-1 to terminate")

	expect.NoError(t, e.Client.Delete(t.Context(), program, client.GracePeriodSeconds(0)))
	out := removes(t, config)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); !apierrors.IsNotFound(err) {
		t.Errorf("get the RoleBinding of seamark-workloads: %v, want not found", err)
	}
	if want := "Kept the CRDs of sets and jobs"; !strings.Contains(out, want) {
		t.Errorf("output\n%swant it to contain %q", out, want)
	}
	checkWorkloadsKept(t, e, set, pod)
}

func checkWorkloadsKept(t *testing.T, e *env.Env, set *v1alpha1.CloneSet, pod *corev1.Pod) {
	t.Helper()
	uid := pod.UID
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	if pod.UID != uid || pod.DeletionTimestamp != nil || len(pod.OwnerReferences) != 1 {
		t.Errorf("pod of the CloneSet: UID %s, deleted at %v, owners %v, want it unchanged", pod.UID, pod.DeletionTimestamp, pod.OwnerReferences)
	}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	if set.DeletionTimestamp != nil {
		t.Error("the CloneSet is being deleted")
	}
	deployment := &appsv1.Deployment{}
	expect.NoError(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: workloads}, deployment))
	if *deployment.Spec.Replicas != 0 {
		t.Errorf("the Deployment of seamark-workloads has %d replicas, want 0", *deployment.Spec.Replicas)
	}
	err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: workloads}, &coordinationv1.Lease{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get the lease of seamark-workloads: %v, want not found", err)
	}
}

func cloneSet(namespace string) *v1alpha1.CloneSet {
	labels := map[string]string{"app": "set"}
	return &v1alpha1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
}
