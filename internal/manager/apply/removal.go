// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
)

// ErrOutdated means that the object has changed since it was read.
var ErrOutdated = errors.New("object has changed since it was read")

// Remove removes the keys from the pod, even if other managers own them too, in one write to its
// status. It returns the pod's resource version after the write. The error is ErrOutdated if the
// pod has changed, because its owners may have changed too, and ErrGone if it no longer exists.
func (p *Pods) Remove(ctx context.Context, pod *corev1.Pod, keys []mark.Key) (string, error) {
	body, err := json.Marshal(removal(pod, keys))
	if err != nil {
		return "", fmt.Errorf("encode removal of marks from pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	pods := p.client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(pod.Namespace)
	written, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, body,
		metav1.PatchOptions{FieldManager: v1alpha1.FieldManager}, "status")
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("remove marks from pod %s/%s: %w", pod.Namespace, pod.Name, ErrOutdated)
	case err != nil:
		return "", fmt.Errorf("remove marks from pod %s/%s: %w", pod.Namespace, pod.Name, orGone(err))
	}
	return written.ResourceVersion, nil
}

// removal returns a strategic merge patch: null removes a key from a map, and a directive removes
// a condition by its type.
func removal(pod *corev1.Pod, keys []mark.Key) map[string]any {
	labels, annotations := map[string]any{}, map[string]any{}
	var conditions []map[string]any
	for _, key := range keys {
		switch key.Kind {
		case mark.KindLabel:
			labels[key.Name] = nil
		case mark.KindAnnotation:
			annotations[key.Name] = nil
		case mark.KindCondition:
			conditions = append(conditions, map[string]any{"$patch": "delete", "type": key.Name})
		}
	}
	metadata := map[string]any{"resourceVersion": pod.ResourceVersion}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch := map[string]any{"metadata": metadata}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	return patch
}
