// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// Command cannot exist in a container: the runtime mounts /dev, whose null is not a folder. Nothing of the image
	// runs, whatever it contains.
	Command = "/dev/null/pull"

	// maxText is the maximum length of the text about a failure, in bytes.
	maxText = 512

	containerName = "pull"
	// nobody is a user that is not root, which images need not know.
	nobody = 65534
	// hashLength is the number of characters of the hash in the name of a pod.
	hashLength = 20
	// maxLabel is the maximum length of the value of a label.
	maxLabel = 63
)

// Kind returns the kind of the objects.
func Kind() schema.GroupVersionKind { return v1alpha1.GroupVersion().WithKind("ImagePullJob") }

// Name returns the name of the pod of an attempt on a node.
func Name(job types.UID, node string, attempt int32) string {
	sum := sha256.Sum256([]byte(string(job) + "\x00" + node + "\x00" + strconv.Itoa(int(attempt))))
	return "pull-" + hex.EncodeToString(sum[:])[:hashLength]
}

// Pod returns the pod of an attempt. It has no label but the one of the job and WorkloadKey, so that no Service and no set selects it,
// and opts out of service meshes, which would add containers.
func Pod(job *v1alpha1.ImagePullJob, node string, attempt int32) *corev1.Pod {
	// Nodes that have no free cpu and memory can pull. A LimitRange would add its defaults to a container without requests.
	free := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0"), corev1.ResourceMemory: resource.MustParse("0")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: Name(job.UID, node, attempt),
			Labels: map[string]string{v1alpha1.ImagePullJobKey: strings.TrimRight(job.Name[:min(len(job.Name), maxLabel)], "-.")},
			Annotations: map[string]string{
				v1alpha1.ImagePullAttemptKey: strconv.Itoa(int(attempt)),
				"sidecar.istio.io/inject":    "false", "linkerd.io/inject": "disabled",
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, Kind())},
		},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever,
			ServiceAccountName: job.Annotations[v1alpha1.ServiceAccountKey], AutomountServiceAccountToken: new(false),
			// API servers remove a pod without a grace period at once.
			TerminationGracePeriodSeconds: new(int64(0)), EnableServiceLinks: new(false),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: containerName, Image: job.Spec.Image, Command: []string{Command}, ImagePullPolicy: job.Spec.ImagePullPolicy,
				Resources: corev1.ResourceRequirements{Requests: free},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	for _, secret := range job.Spec.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
	}
	return pod
}

// Reserve lets the pod of an attempt request and limit cpu and memory, which a LimitRange, a quota or a policy may demand.
func Reserve(pod *corev1.Pod) *corev1.Pod {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: resources, Limits: resources}
	return pod
}

// attemptOf returns the number of the attempt of a pod.
func attemptOf(pod *corev1.Pod) int32 {
	attempt, _ := strconv.ParseInt(pod.Annotations[v1alpha1.ImagePullAttemptKey], 10, 32)
	return int32(max(attempt, 0))
}

// outcome is how an attempt goes.
type outcome int

const (
	// running means that the kubelet has neither passed the pull nor failed.
	running outcome = iota
	// pulled means that the kubelet has passed the pull.
	pulled
	// failed means that another attempt may help, and hopeless that none can.
	failed
	hopeless
)

// outcomeOf returns how the attempt of a pod goes, and why it failed.
func outcomeOf(pod *corev1.Pod, timeout time.Duration, now time.Time) (outcome, string) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Name != containerName {
			continue
		}
		if status.ImageID != "" || status.State.Running != nil {
			return pulled, ""
		}
		if end := status.State.Terminated; end != nil && isPulled(end.Reason) {
			return pulled, ""
		}
		waiting := ptr.Deref(status.State.Waiting, corev1.ContainerStateWaiting{})
		switch reason := waiting.Reason; {
		case isPulled(reason):
			return pulled, ""
		case reason == "InvalidImageName":
			return hopeless, explain(reason, waiting.Message)
		case isRefusal(reason):
			return failed, explain(reason, waiting.Message)
		}
	}
	switch {
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return failed, explain(pod.Status.Reason, pod.Status.Message)
	case !now.Before(pod.CreationTimestamp.Add(timeout)):
		return failed, fmt.Sprintf("Timeout: the pull took longer than pullPolicy.timeoutSeconds, %d", int(timeout.Seconds()))
	default:
		return running, ""
	}
}

// isPulled reports whether a kubelet gives the reason only after it has passed the pull.
func isPulled(reason string) bool {
	switch reason {
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun":
		return true
	default:
		return false
	}
}

// isRefusal reports whether a kubelet gives the reason when it could not pull.
func isRefusal(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "ErrImageNeverPull", "RegistryUnavailable", "SignatureValidationFailed":
		return true
	default:
		return false
	}
}

// explain returns why an attempt failed. The text of a kubelet may contain any text of a registry.
func explain(reason, message string) string {
	reason = cmp.Or(reason, "Failed")
	if message == "" {
		return reason
	}
	return text.Truncate(reason+": "+message, maxText)
}
