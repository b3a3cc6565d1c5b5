// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/isolate"
)

// Markers writes the status and the finalizers of PodProbeMarkers.
type Markers struct {
	client   client.Client
	metadata metadata.Interface
}

// NewMarkers returns a writer of markers. It needs the verb patch on podprobemarkers
// and podprobemarkers/status.
func NewMarkers(client client.Client, metadata metadata.Interface) *Markers {
	return &Markers{client: client, metadata: metadata}
}

// Status sets the marker's status and returns the marker as stored, without the fields that the
// CRD does not have. If the marker has changed since it was read, the error is a conflict of the
// API server; if it no longer exists, the error is ErrGone.
func (m *Markers) Status(ctx context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error) {
	body, err := json.Marshal(map[string]any{
		// A write to the status ignores the UID.
		"metadata": map[string]any{"resourceVersion": marker.ResourceVersion},
		"status": map[string]any{
			"observedGeneration": status.ObservedGeneration,
			"matchedPods":        status.MatchedPods,
			"conditions":         status.Conditions,
			"succeeded":          status.Succeeded,
			"failed":             status.Failed,
			"unknown":            status.Unknown,
			"probes":             status.Probes,
			"podErrors":          status.PodErrors,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode status of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	stored := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: marker.Namespace, Name: marker.Name}}
	if isolate.Of(marker) != nil {
		err = m.patchIsolated(ctx, stored, body)
	} else {
		err = m.client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return nil, fmt.Errorf("write status of marker %s/%s: %w", marker.Namespace, marker.Name, orGone(err))
	}
	return stored, nil
}

// patchIsolated patches the status of a marker that cannot be decoded, and isolates the stored one.
func (m *Markers) patchIsolated(ctx context.Context, stored *v1alpha1.PodProbeMarker, body []byte) error {
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("PodProbeMarker"))
	whole.SetNamespace(stored.Namespace)
	whole.SetName(stored.Name)
	if err := m.client.Status().Patch(ctx, whole, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return err //nolint:wrapcheck // The caller wraps it.
	}
	encoded, err := whole.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return isolate.Object(encoded, stored)
}

// Finalizers sets the marker's finalizers and returns its resource version after the write. If the
// marker has changed since it was read, the error is a conflict of the API server; if it no longer
// exists, the error is ErrGone.
func (m *Markers) Finalizers(ctx context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) (string, error) {
	markers := m.metadata.Resource(v1alpha1.GroupVersion().WithResource("podprobemarkers")).Namespace(marker.Namespace)
	version, err := patch(ctx, markers, marker.Name, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"resourceVersion": marker.ResourceVersion, "finalizers": finalizers,
	}}, metav1.PatchOptions{})
	if err != nil {
		return "", fmt.Errorf("write finalizers of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	return version, nil
}
