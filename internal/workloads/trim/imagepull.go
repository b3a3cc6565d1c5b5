// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/imagename"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

const (
	// packed is the beginning of the names of images of a trimmed node. No image has it in its name.
	packed = "\x00"
	// digest is the length of what is kept of the name of an image. A wrong match is harmless: a node is not asked to
	// pull an image that it then pulls when a pod needs it.
	digest = 4
	// maxMessage is the maximum length of the message of a kubelet, in bytes.
	maxMessage = 1024
)

// NodeWithImages is like Node. It also keeps when the node joined, and a digest of each name of an image that the node has:
// 4 bytes instead of some 80. A node lists at most 50 images by default.
func NodeWithImages(node *corev1.Node) *corev1.Node {
	kept := Node(node)
	kept.CreationTimestamp = node.CreationTimestamp
	kept.Status.Images = []corev1.ContainerImage{{Names: []string{packed + digests(node)}}}
	return kept
}

// digests returns the digests of the names of the images of a node. Informers may trim an object twice.
func digests(node *corev1.Node) string {
	var all []byte
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			if strings.HasPrefix(name, packed) {
				return name[len(packed):]
			}
			all = binary.BigEndian.AppendUint32(all, digestOf(name))
		}
	}
	return string(all)
}

// HasImage reports whether the status of a node that NodeWithImages has trimmed lists the image.
func HasImage(node *corev1.Node, image string) bool {
	if len(node.Status.Images) == 0 || len(node.Status.Images[0].Names) == 0 {
		return false
	}
	// Kubelets list a name with a tag and a digest without the tag.
	if name, sum, both := strings.Cut(image, "@"); both {
		if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
			image = name[:colon] + "@" + sum
		}
	}
	want := digestOf(image)
	for digests := strings.TrimPrefix(node.Status.Images[0].Names[0], packed); len(digests) >= digest; digests = digests[digest:] {
		if binary.BigEndian.Uint32([]byte(digests[:digest])) == want {
			return true
		}
	}
	return false
}

func digestOf(name string) uint32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(imagename.Canonical(name)))
	return hash.Sum32()
}

// PodWithPulls is like trim. It also keeps the labels and the node of each pod, by which ImagePullJobs select nodes, and
// how far the pod of a pull is.
func PodWithPulls(trim func(*corev1.Pod) *corev1.Pod) func(*corev1.Pod) *corev1.Pod {
	return func(pod *corev1.Pod) *corev1.Pod {
		if owner.Is(metav1.GetControllerOfNoCopy(pod), schema.GroupKind{Group: v1alpha1.GroupName, Kind: "ImagePullJob"}) {
			return pull(pod)
		}
		kept := trim(pod)
		kept.Labels, kept.DeletionTimestamp, kept.Status.Phase = pod.Labels, pod.DeletionTimestamp, pod.Status.Phase
		kept.Spec.NodeName = pod.Spec.NodeName
		return kept
	}
}

// pull returns the pod of a pull with only what its plan reads.
func pull(pod *corev1.Pod) *corev1.Pod {
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, OwnerReferences: pod.OwnerReferences,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Annotations: map[string]string{v1alpha1.ImagePullAttemptKey: pod.Annotations[v1alpha1.ImagePullAttemptKey]},
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: text.Truncate(pod.Status.Message, maxMessage),
		},
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		trimmed := corev1.ContainerStatus{Name: status.Name, ImageID: status.ImageID}
		if waiting := status.State.Waiting; waiting != nil {
			trimmed.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason, Message: text.Truncate(waiting.Message, maxMessage)}
		}
		if end := status.State.Terminated; end != nil {
			trimmed.State.Terminated = &corev1.ContainerStateTerminated{Reason: end.Reason}
		}
		if status.State.Running != nil {
			trimmed.State.Running = &corev1.ContainerStateRunning{}
		}
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, trimmed)
	}
	return kept
}
