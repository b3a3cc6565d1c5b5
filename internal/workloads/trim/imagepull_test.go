// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// newNode returns a node as large as those of a cluster.
func newNode(name string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "01234567-89ab-cdef-0123-456789abcdef", ResourceVersion: "1234567", Labels: map[string]string{},
		Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
	}}
	for i := range 10 {
		node.Labels[fmt.Sprintf("topology.example.com/%s-%d", name, i)] = fmt.Sprintf("value-%s-%d", name, i)
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(), Message: "text",
		})
	}
	for i := range 50 {
		image := fmt.Sprintf("registry.example.com/%s/image-%d", name, i)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{image + ":v1", image + "@sha256:" + strings.Repeat("0a", 32)}})
	}
	return node
}

func TestImagesOfNodes(t *testing.T) {
	node := trim.NodeWithImages(newNode("n"))
	if again := trim.NodeWithImages(node); cmp.Diff(node, again) != "" {
		t.Errorf("trimmed twice (-once +twice):\n%s", cmp.Diff(node, again))
	}
	digest := "@sha256:" + strings.Repeat("0a", 32)
	for image, want := range map[string]bool{
		"registry.example.com/n/image-0:v1": true, "registry.example.com/n/image-49" + digest: true, "registry.example.com/n/image-49:v9" + digest: true,
		"registry.example.com/n/image-50:v1": false, "registry.example.com/n/image-0:v2": false, "image-0:v1": false,
	} {
		if got := trim.HasImage(node, image); got != want {
			t.Errorf("has image %s: %v, want %v", image, got, want)
		}
	}
	if trim.HasImage(trim.Node(newNode("n")), "registry.example.com/n/image-0:v1") {
		t.Error("a node without digests has an image")
	}
}

// TestImagesAreSmall measures what the images of a node add to what the cache keeps of it.
func TestImagesAreSmall(t *testing.T) {
	const nodes, budget = 2000, 512
	kept := make([]*corev1.Node, 2*nodes)
	size := func(offset int, trimNode func(*corev1.Node) *corev1.Node) int {
		heap := func() int {
			runtime.GC()
			runtime.GC() // The first one may leave what was in use when it began.
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return int(stats.HeapAlloc)
		}
		before := heap()
		for i := range nodes {
			kept[offset+i] = trimNode(newNode(fmt.Sprintf("node-%05d", i)))
		}
		return (heap() - before) / nodes
	}
	bare, with := size(0, trim.Node), size(nodes, trim.NodeWithImages)
	t.Logf("%d bytes per node, %d without images", with, bare)
	if with-bare > budget {
		t.Errorf("the images of a node take %d bytes, budget %d", with-bare, budget)
	}
	runtime.KeepAlive(kept)
}

// TestPodsOfPulls checks what is kept of a pod of a pull, and of any other pod.
func TestPodsOfPulls(t *testing.T) {
	trimPod := trim.PodWithPulls(trim.Pod(nil))
	owner := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Name: "pull", UID: "u", Controller: new(true)}
	long := strings.Repeat("a", 5000)
	pull := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", UID: "1", OwnerReferences: []metav1.OwnerReference{owner}, CreationTimestamp: metav1.Now(),
			Annotations: map[string]string{v1alpha1.ImagePullAttemptKey: "2", "other": "x"},
		},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "pull", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods", Message: long, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "pull", Image: "i", ImageID: "sha256:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: long}},
		}}},
	}
	want := pull.DeepCopy()
	want.Annotations = map[string]string{v1alpha1.ImagePullAttemptKey: "2"}
	want.Spec.Containers, want.Status.Message = nil, long[:1024]
	want.Status.ContainerStatuses[0].Image, want.Status.ContainerStatuses[0].State.Waiting.Message = "", long[:1024]
	if diff := cmp.Diff(want, trimPod(pull)); diff != "" {
		t.Errorf("pod of a pull (-want +got):\n%s", diff)
	}
	owner.Kind = "ReplicaSet"
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1", OwnerReferences: []metav1.OwnerReference{owner}, Labels: map[string]string{"app": "a"}},
		Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if diff := cmp.Diff(other, trimPod(other)); diff != "" {
		t.Errorf("another pod (-want +got):\n%s", diff)
	}
}
