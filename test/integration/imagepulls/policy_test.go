// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepulls_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/openkruise"
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

// TestRestart ends the program while a job pulls.
func TestRestart(t *testing.T) {
	stop := start(t, 100)
	w := newWorld(t, 20)
	joined := time.Now()
	await.Until(t, "nodes that joined before the second in which the job starts", func(context.Context) (string, error) {
		if time.Now().Unix() == joined.Unix() {
			return "the same second", nil
		}
		return "", nil
	})
	w.kubelets(func(pod *corev1.Pod) string {
		if pod.Spec.NodeName == w.NodeName("0") {
			return "" // The first node takes long.
		}
		return "sha256:1"
	})
	w.create(parallelism(3))
	w.until("some nodes have the image", func() error { return w.atLeast(9) })
	stop()
	w.kubelets(func(*corev1.Pod) string { return "sha256:1" })
	start(t, 100)
	w.release("sha256:1")
	w.ends("Completed")
	w.counts("20 0 20 0")
	asked, most := w.asks()
	if again := len(asked) - 20; most > 3 || sets.New(asked...).Len() != 20 || again > 3 {
		t.Errorf("at most %d pods, %d nodes were asked again: %v", most, again, asked)
	}
}

// TestPlacesAreShared checks that two namespaces share the places of the cluster, although one came first. One is left to others.
func TestPlacesAreShared(t *testing.T) {
	start(t, 4)
	first, second := newWorld(t, 12), newWorld(t, 12)
	for _, w := range []*world{first, second} {
		w.kubelets(func(*corev1.Pod) string { return "" })
	}
	first.create(parallelism(12))
	first.counts("12 3 0 0")
	second.create(parallelism(12))
	first.release("sha256:1")
	first.kubelets(func(*corev1.Pod) string { return "" })
	second.counts("12 2 0 0")
	first.counts("12 2 3 0")
	first.release("sha256:1")
	second.release("sha256:1")
	first.ends("Completed")
	second.ends("Completed")
	if _, most := first.asks(); most > 4 {
		t.Errorf("at most %d pods, want 4", most)
	}
}

// TestTakeOver checks that jobs of OpenKruise that have ended stay as they are, and that a running one begins again.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, 2)
	jobs := openkruise.Restore(t, server.Client, w.Namespace, "ImagePullJob", `"test":"recorded"`, `"world":"`+w.Namespace+`"`)
	start(t, 100)
	for _, job := range jobs {
		w.job = &v1alpha1.ImagePullJob{ObjectMeta: w.Meta(job.GetName())}
		switch job.GetName() {
		case "paused":
			w.has(v1alpha1.ImagePullJobComplete, metav1.ConditionFalse, "Paused")
			expect.NoError(t, server.Client.Delete(t.Context(), w.job)) // With OpenKruise's finalizer.
			w.Gone(w.job)
		case "running":
			w.ends("Completed")
			w.counts("2 0 2 0")
		default:
			w.until("the job is processed", func() error {
				if w.job.Status.ObservedGeneration == 0 {
					return errors.New("not yet")
				}
				return openkruise.Changed(t, server.Client, job)
			})
		}
	}
	if asked, _ := w.asks(); len(asked) != 2 {
		t.Errorf("asked %v, want each node once", asked)
	}
}
