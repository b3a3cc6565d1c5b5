// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/internal/program/apierror"
	"github.com/seamark-dev/seamark/internal/program/isolate"
)

// Plans writes the plans of nodes. It also requests and deletes the ProbeReports of nodes, which only
// agents write.
type Plans struct {
	writer   client.Writer
	metadata metadata.Interface
}

// NewPlans returns a writer of plans. It needs the verbs create, patch and delete on nodepodprobes,
// the verbs create, update and deletecollection on probeplans, and the verb deletecollection on
// probereports.
func NewPlans(writer client.Writer, metadata metadata.Interface) *Plans {
	return &Plans{writer: writer, metadata: metadata}
}

// Create creates the NodePodProbe of the node, with the references to its ProbePlans. The node owns it,
// so that it is deleted with the node. Create returns the created object.
func (p *Plans) Create(ctx context.Context, node *metav1.PartialObjectMetadata, references string) (*v1alpha1.NodePodProbe, error) {
	created := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, OwnerReferences: ownedBy(node),
		Annotations: map[string]string{v1alpha1.ProbePlansAnnotationKey: references},
	}}
	if err := p.writer.Create(ctx, created); err != nil {
		return nil, fmt.Errorf("create NodePodProbe of node %s: %w", node.Name, err)
	}
	return created, nil
}

func ownedBy(node *metav1.PartialObjectMetadata) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}}
}

// Refer replaces the references of the NodePodProbe to the ProbePlans of its node, and the UIDs of the pods
// that it removes from them, and removes the plan of OpenKruise. It returns the resource version after the
// write. The error is ErrGone if the NodePodProbe no longer exists or was created again.
func (p *Plans) Refer(ctx context.Context, npp *v1alpha1.NodePodProbe, references string, removed []string) (string, error) {
	// A merge patch replaces the whole list.
	body := map[string]any{
		"metadata": map[string]any{"uid": npp.UID, "annotations": map[string]any{v1alpha1.ProbePlansAnnotationKey: references}},
		"spec":     map[string]any{"podProbes": nil, "removedPods": removed},
	}
	// The CRD of OpenKruise has no removedPods.
	version, err := patch(ctx, p.nodePodProbes(), npp.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		return "", fmt.Errorf("write plan of node %s: %w", npp.Name, orRecreated(err))
	}
	return version, nil
}

// orRecreated returns ErrGone if the error means that the object has another UID.
func orRecreated(err error) error {
	if apierrors.IsConflict(err) || apierror.IsOtherUID(err) {
		return ErrGone
	}
	return err
}

// WriteSlice creates or updates a ProbePlan of the node, and returns it. An update fails with a
// conflict if the ProbePlan is not the one that the slice replaces.
func (p *Plans) WriteSlice(ctx context.Context, node *metav1.PartialObjectMetadata, slice slicing.Slice) (*seamarkv1alpha1.ProbePlan, error) {
	written := &seamarkv1alpha1.ProbePlan{
		ObjectMeta: metav1.ObjectMeta{Name: seamarkv1alpha1.SliceName(node.Name, slice.Number)},
		NodeName:   node.Name, Pods: slice.Pods,
	}
	if stored := slice.Stored; stored != nil {
		written.UID, written.ResourceVersion = stored.UID, stored.ResourceVersion
		written.Labels, written.Annotations, written.Finalizers = stored.Labels, isolate.Stored(stored), stored.Finalizers
	}
	written.OwnerReferences = ownedBy(node)
	// Without the search for unknown fields, the API server decodes the plan once less.
	var err error
	if slice.Stored == nil {
		err = p.writer.Create(ctx, written, client.FieldValidation(metav1.FieldValidationIgnore))
	} else {
		// An empty entry makes the API server stop comparing both versions, field by field, to find out who
		// owns what. Nobody else owns a field of a ProbePlan.
		written.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		err = p.writer.Update(ctx, written, client.FieldValidation(metav1.FieldValidationIgnore))
	}
	if err != nil {
		return nil, fmt.Errorf("write ProbePlan %s: %w", written.Name, err)
	}
	return written, nil
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
	if err != nil {
		return fmt.Errorf("annotate NodePodProbe %s: %w", npp.Name, orRecreated(err))
	}
	return nil
}

// DeleteReports deletes the ProbeReports of the node.
func (p *Plans) DeleteReports(ctx context.Context, node string) error {
	return p.deleteSlices(ctx, node, "probereports")
}

// DeletePlans deletes the ProbePlans of the node.
func (p *Plans) DeletePlans(ctx context.Context, node string) error {
	return p.deleteSlices(ctx, node, "probeplans")
}

func (p *Plans) deleteSlices(ctx context.Context, node, resource string) error {
	err := p.metadata.Resource(seamarkv1alpha1.GroupVersion().WithResource(resource)).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "nodeName=" + node})
	if err != nil {
		return fmt.Errorf("delete %s of node %s: %w", resource, node, err)
	}
	return nil
}

func (p *Plans) nodePodProbes() metadata.ResourceInterface {
	return p.metadata.Resource(v1alpha1.GroupVersion().WithResource("nodepodprobes"))
}
