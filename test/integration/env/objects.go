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

// CreatePod creates the pod with its status and returns it as stored.
func CreatePod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	status := pod.Status
	pod.UID, pod.ResourceVersion = "", ""
	if err := c.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	// A manager may write the pod between the two requests, so the status is patched.
	created := pod.DeepCopy()
	pod.Status = status
	if err := c.Status().Patch(ctx, pod, client.StrategicMergeFrom(created)); err != nil {
		return nil, fmt.Errorf("set the status of pod %s: %w", pod.Name, err)
	}
	return pod, nil
}
