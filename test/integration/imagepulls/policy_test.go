// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepulls_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// projected returns a volume that projects the source.
func projected(source corev1.VolumeProjection) corev1.Volume {
	return corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}}}
}

// TestPolicyOfPulls checks which pods the service account may create for an ImagePullJob.
func TestPolicyOfPulls(t *testing.T) {
	install(t)
	server.GrantWorkloads(t, "default")
	server.GrantWorkloads(t, metav1.NamespaceSystem)
	account := server.ClientOf(t, server.ServiceAccount(t, env.SystemNamespace, workloads.Name, nil))
	job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pull", UID: "1"}}
	job.Spec.Image = "game:1"
	for name, change := range map[string]func(*corev1.Pod){
		"no owner":        func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"another kind":    func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = "ImageListPullJob" },
		"another group":   func(pod *corev1.Pod) { pod.OwnerReferences[0].APIVersion = "batch/v1" },
		"not controller":  func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil },
		"another command": func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = []string{"sh"} },
		"no command":      func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = nil },
		"more containers": func(pod *corev1.Pod) {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "other", Image: "a:1"})
		},
		"init container": func(pod *corev1.Pod) { pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "a:1"}} },
		"volume":         func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "v"}} },
		"volume of a Secret": func(pod *corev1.Pod) {
			secret := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}
			pod.Spec.Volumes = []corev1.Volume{projected(corev1.VolumeProjection{Secret: secret})}
		},
		"token":   func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = new(true) },
		"no node": func(pod *corev1.Pod) { pod.Spec.NodeName = "" },
	} {
		pod := imagepull.Pod(job, "n1", 0)
		// As webhooks of clouds do for the identity of a service account.
		pod.Spec.ServiceAccountName = "default"
		token := &corev1.ServiceAccountTokenProjection{Audience: "sts.example.com", Path: "token"}
		pod.Spec.Volumes = []corev1.Volume{projected(corev1.VolumeProjection{ServiceAccountToken: token})}
		expect.NoError(t, account.Create(t.Context(), pod.DeepCopy(), client.DryRunAll))
		change(pod)
		env.Refused(t, name, "the pod can also be a pull that runs nothing", func(ctx context.Context) error {
			return account.Create(ctx, pod.DeepCopy(), client.DryRunAll)
		})
	}
	pod := imagepull.Pod(job, "n1", 0)
	pod.Namespace = metav1.NamespaceSystem
	env.Refused(t, "kube-system", "cannot write pods in its own namespace", func(ctx context.Context) error {
		return account.Create(ctx, pod.DeepCopy(), client.DryRunAll)
	})
	// Pods of pulls are deleted, and never changed.
	pod = imagepull.Pod(job, "n1", 0)
	expect.NoError(t, server.Client.Create(t.Context(), pod))
	env.Refused(t, "a patch", "the pod can also be a pull that runs nothing", func(ctx context.Context) error {
		return account.Patch(ctx, pod.DeepCopy(), env.MergePatch(`{"metadata": {"labels": {"a": "b"}}}`), client.DryRunAll)
	})
	expect.NoError(t, account.Delete(t.Context(), pod))
}

// TestPolicyOfAuthors checks that an author who cannot create pods is refused if the policy is enforced.
func TestPolicyOfAuthors(t *testing.T) {
	install(t)
	binding := &unstructured.Unstructured{}
	binding.SetAPIVersion("admissionregistration.k8s.io/v1")
	binding.SetKind("ValidatingAdmissionPolicyBinding")
	binding.SetName("seamark-imagepulljob-author")
	expect.NoError(t, server.Client.Patch(t.Context(), binding, env.MergePatch(`{"spec": {"validationActions": ["Deny"]}}`)))
	namespace := server.Namespace(t)
	writer := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"imagepulljobs"}, Verbs: []string{"create", "update"}}
	server.Grant(t, namespace, env.UserSubject("author"), writer)
	author := server.ClientOf(t, server.User(t, "author"))
	job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
	job.Spec.Image, job.Spec.Selector = "game:1", &v1alpha1.ImagePullJobNodeSelector{Names: []string{"none"}}
	create := func(ctx context.Context) error { return author.Create(ctx, job.DeepCopy(), client.DryRunAll) }
	env.Refused(t, "an author", `user "author" cannot create pods in namespace "`+namespace+`"`, create)
	server.Grant(t, namespace, env.UserSubject("author"), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}})
	await.Poll{Interval: 50 * time.Millisecond, Timeout: await.Timeout}.Success(t, "an author who can create pods", create)
}
