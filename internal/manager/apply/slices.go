// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// Slices requests and deletes the ProbeReports of nodes. Only agents write them.
type Slices struct {
	metadata metadata.Interface
}

// NewSlices returns a Slices. It needs the verb patch on nodepodprobes and the verb
// deletecollection on probereports.
func NewSlices(metadata metadata.Interface) *Slices {
	return &Slices{metadata: metadata}
}

// Restore sets the annotation of the NodePodProbe that makes the agent read its ProbeReports again
// and restore them. The value identifies what happened to them. The error is ErrGone if the
// NodePodProbe no longer exists or was created again.
func (s *Slices) Restore(ctx context.Context, npp *v1alpha1.NodePodProbe, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": npp.UID, "annotations": map[string]string{v1alpha1.RestoreReportsAnnotationKey: value},
	}})
	if err != nil {
		return fmt.Errorf("encode annotation of NodePodProbe %s: %w", npp.Name, err)
	}
	_, err = s.metadata.Resource(v1alpha1.GroupVersion().WithResource("nodepodprobes")).
		Patch(ctx, npp.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || isOtherUID(err) {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("annotate NodePodProbe %s: %w", npp.Name, err)
	}
	return nil
}

// DeleteOf deletes the ProbeReports of the node.
func (s *Slices) DeleteOf(ctx context.Context, node string) error {
	err := s.metadata.Resource(seamarkv1alpha1.GroupVersion().WithResource("probereports")).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "nodeName=" + node})
	if err != nil {
		return fmt.Errorf("delete ProbeReports of node %s: %w", node, err)
	}
	return nil
}
