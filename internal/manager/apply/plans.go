// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/apierror"
)

// ErrTooLarge means that the API server cannot store a plan: etcd's limit for the plan and its
// report together is about 1.5 MiB.
var ErrTooLarge = errors.New("plan is too large to be stored")

// Plans writes the plans of nodes. It also requests and deletes the ProbeReports of nodes, which only
// agents write.
type Plans struct {
	writer   client.Writer
	metadata metadata.Interface
}

// NewPlans returns a writer of plans. It needs the verbs create, patch and delete on
// nodepodprobes, and the verb deletecollection on probereports.
func NewPlans(writer client.Writer, metadata metadata.Interface) *Plans {
	return &Plans{writer: writer, metadata: metadata}
}

// Create creates the NodePodProbe of the node with the plan. The node owns it, so that it is
// deleted with the node. Create returns the created object.
func (p *Plans) Create(ctx context.Context, node *metav1.PartialObjectMetadata, spec v1alpha1.NodePodProbeSpec) (*v1alpha1.NodePodProbe, error) {
	created := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true),
			}},
		},
		Spec: spec,
	}
	if err := p.writer.Create(ctx, created, client.FieldValidation(metav1.FieldValidationIgnore)); err != nil {
		return nil, fmt.Errorf("create NodePodProbe of node %s: %w", node.Name, orTooLarge(err))
	}
	return created, nil
}

// Replace replaces the node's plan. It returns the resource version after the write, and ErrGone
// if the node has no NodePodProbe.
func (p *Plans) Replace(ctx context.Context, node string, spec v1alpha1.NodePodProbeSpec) (string, error) {
	// A merge patch replaces the whole list. Without pods it is null.
	body := map[string]any{"spec": map[string]any{"podProbes": spec.PodProbes}}
	// Without the search for unknown fields, the API server decodes the plan once less.
	version, err := patch(ctx, p.nodePodProbes(), node, types.MergePatchType, body,
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		return "", fmt.Errorf("write plan of node %s: %w", node, orTooLarge(err))
	}
	return version, nil
}

// Delete deletes the NodePodProbe with this UID. It returns no error if it is already deleted.
func (p *Plans) Delete(ctx context.Context, npp *v1alpha1.NodePodProbe) error {
	err := p.writer.Delete(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: npp.Name}},
		client.Preconditions{UID: &npp.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete NodePodProbe %s: %w", npp.Name, err)
	}
	return nil
}

// Restore sets the annotation of the NodePodProbe that makes the agent read its ProbeReports again
// and restore them. The value identifies what happened to them. The error is ErrGone if the
// NodePodProbe no longer exists or was created again.
func (p *Plans) Restore(ctx context.Context, npp *v1alpha1.NodePodProbe, value string) error {
	_, err := patch(ctx, p.nodePodProbes(), npp.Name, types.MergePatchType, map[string]any{"metadata": map[string]any{
		"uid": npp.UID, "annotations": map[string]string{v1alpha1.RestoreReportsAnnotationKey: value},
	}}, metav1.PatchOptions{})
	if apierrors.IsConflict(err) || apierror.IsOtherUID(err) {
		err = ErrGone
	}
	if err != nil {
		return fmt.Errorf("annotate NodePodProbe %s: %w", npp.Name, err)
	}
	return nil
}

// DeleteReports deletes the ProbeReports of the node.
func (p *Plans) DeleteReports(ctx context.Context, node string) error {
	err := p.metadata.Resource(seamarkv1alpha1.GroupVersion().WithResource("probereports")).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "nodeName=" + node})
	if err != nil {
		return fmt.Errorf("delete ProbeReports of node %s: %w", node, err)
	}
	return nil
}

func (p *Plans) nodePodProbes() metadata.ResourceInterface {
	return p.metadata.Resource(v1alpha1.GroupVersion().WithResource("nodepodprobes"))
}

func orTooLarge(err error) error {
	if apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large") ||
		strings.Contains(err.Error(), "message larger than max") {
		return errors.Join(ErrTooLarge, err)
	}
	return err
}
