// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
)

// Handover sets the annotations that tell the pod's provider what to probe, in one write to the
// pod's status, and returns the pod's resource version after it. Empty annotations are removed.
// An apply could not remove those that the webhook set, because they belong to the client that
// created the pod. The error is ErrGone if the pod no longer exists or another pod has its name.
func (p *Pods) Handover(ctx context.Context, pod *corev1.Pod, annotations serverless.Annotations) (string, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID,
		"annotations": map[string]any{
			v1alpha1.PodProbeMarkerAnnotationKey:     orNull(annotations.Probes),
			v1alpha1.PodProbeMarkerListAnnotationKey: orNull(annotations.Markers),
		},
	}})
	if err != nil {
		return "", fmt.Errorf("encode annotations of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	version, err := p.patch(ctx, pod, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return "", fmt.Errorf("annotate pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// orNull returns null, which removes a key in a merge patch, for an empty value.
func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}
