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
	"github.com/seamark-dev/seamark/internal/serverless"
)

// Handover makes the given annotations those by which the pod's provider is told what to
// probe, in one write to the pod's status, and returns the pod's resource version after it.
// No annotations take them off, whoever has set them: the webhook sets them in the name of
// whoever creates the pod, so that an apply could not. The error is ErrGone where the pod
// is gone or a pod with another UID has its name.
func (p *Pods) Handover(ctx context.Context, pod *corev1.Pod, annotations serverless.Annotations) (string, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID,
		"annotations": map[string]any{
			v1alpha1.PodProbeMarkerAnnotationKey:     orNull(annotations.Probes),
			v1alpha1.PodProbeMarkerListAnnotationKey: orNull(annotations.Markers),
		},
	}})
	if err != nil {
		return "", fmt.Errorf("encoding the annotations of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	version, err := p.patch(ctx, pod, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if err != nil {
		return "", fmt.Errorf("annotating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return version, nil
}

// orNull returns null, which a merge patch takes for a removal, in place of nothing.
func orNull(value string) any {
	if value == "" {
		return nil
	}
	return value
}
