// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Markers writes the parts of PodProbeMarkers that Seamark owns.
type Markers struct {
	client client.Client
}

// NewMarkers returns a writer of markers. It needs the verb patch on podprobemarkers
// and podprobemarkers/status.
func NewMarkers(client client.Client) *Markers {
	return &Markers{client: client}
}

// Status makes the given status the marker's, and returns the marker as stored: an API
// server whose CRD lacks a field has dropped it. Nobody may have changed the marker
// since it was read: else the error is a conflict of the API server, or ErrGone.
func (m *Markers) Status(ctx context.Context, marker *v1alpha1.PodProbeMarker, status v1alpha1.PodProbeMarkerStatus) (*v1alpha1.PodProbeMarker, error) {
	body, err := json.Marshal(map[string]any{
		// The UID says nothing here: a write to the status passes over the metadata.
		"metadata": map[string]any{"resourceVersion": marker.ResourceVersion},
		"status": map[string]any{
			"observedGeneration": status.ObservedGeneration,
			"matchedPods":        status.MatchedPods,
			"conditions":         status.Conditions,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	stored := named(marker)
	err = m.client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, body),
		client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return nil, fmt.Errorf("writing the status of marker %s/%s: %w", marker.Namespace, marker.Name, orGone(err))
	}
	return stored, nil
}

// Finalizers makes the given list the marker's finalizers, if nobody has changed the
// marker since it was read: else the error is a conflict of the API server, or ErrGone.
func (m *Markers) Finalizers(ctx context.Context, marker *v1alpha1.PodProbeMarker, finalizers []string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": marker.ResourceVersion,
		"finalizers":      finalizers,
	}})
	if err != nil {
		return fmt.Errorf("encoding the finalizers of marker %s/%s: %w", marker.Namespace, marker.Name, err)
	}
	err = m.client.Patch(ctx, named(marker), client.RawPatch(types.MergePatchType, body),
		client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return fmt.Errorf("writing the finalizers of marker %s/%s: %w", marker.Namespace, marker.Name, orGone(err))
	}
	return nil
}

func named(marker *v1alpha1.PodProbeMarker) *v1alpha1.PodProbeMarker {
	named := &v1alpha1.PodProbeMarker{}
	named.Namespace, named.Name = marker.Namespace, marker.Name
	return named
}
