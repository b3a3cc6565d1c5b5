// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MergePatch returns a JSON merge patch.
func MergePatch(body string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(body))
}

// CreatePod creates the pod with its status, as InitPod and RunPod do, and returns it as stored.
func CreatePod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	status := pod.Status
	created, err := InitPod(ctx, c, pod)
	if err != nil {
		return nil, err
	}
	return RunPod(ctx, c, created, status)
}

// InitPod creates the pod with the first status that a kubelet writes for a pod without init
// containers: it has the pod's conditions and no address. It returns the pod as stored.
func InitPod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	conditions := pod.Status.Conditions
	pod.UID, pod.ResourceVersion = "", ""
	if err := c.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	return setStatus(ctx, c, pod, corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions})
}

// RunPod sets the status that a kubelet writes when it has started the pod's containers. It
// returns the pod as stored.
func RunPod(ctx context.Context, c client.Client, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	return setStatus(ctx, c, pod, status)
}

func setStatus(ctx context.Context, c client.Client, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	// A manager may write the pod between two requests, so the status is patched.
	before := pod.DeepCopy()
	pod.Status = status
	if err := c.Status().Patch(ctx, pod, client.StrategicMergeFrom(before)); err != nil {
		return nil, fmt.Errorf("set the status of pod %s: %w", pod.Name, err)
	}
	return pod, nil
}
