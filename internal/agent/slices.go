// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// ListSlices returns the slices of the node's report as they are stored now.
func (c *nodeClient) ListSlices(ctx context.Context) ([]seamarkv1alpha1.ProbeReport, error) {
	list := &seamarkv1alpha1.ProbeReportList{}
	selector := fields.OneTermEqualSelector(nodeNameField, c.node).String()
	err := c.slices.Get().Resource(slicesResource).
		VersionedParams(&metav1.ListOptions{FieldSelector: selector}, metav1.ParameterCodec).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("list ProbeReports of node %s: %w", c.node, err)
	}
	for i := range list.Items {
		c.setVersion(list.Items[i].Name, &list.Items[i].ObjectMeta)
	}
	return list.Items, nil
}

// WriteSlice replaces a slice, or creates it, and returns the size of the request. It can be repeated, so it does not matter
// if a response is lost. Each write has a version as its precondition: one that is delivered late, after its error, does not
// replace a newer one.
//
// It first tries what the caller expects: that the slice exists or that it does not. If its version is not known, or is
// another one, WriteSlice reads it.
func (c *nodeClient) WriteSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, exists bool) (size int, err error) {
	if !exists {
		if size, err = c.putSlice(ctx, slice, ""); !apierrors.IsAlreadyExists(err) {
			return size, err
		}
	} else if stored := c.stored(slice.Name); stored.version != "" {
		if size, err = c.replaceSlice(ctx, slice, stored); !isOutdated(err) {
			return size, err
		}
	}
	stored, err := c.readSlice(ctx, slice.Name)
	switch {
	case err != nil:
		return 0, err
	case stored.version == "":
		return c.putSlice(ctx, slice, "")
	default:
		return c.replaceSlice(ctx, slice, stored)
	}
}

// isOutdated reports whether a write failed because the slice has another version, or does not exist. A JSON patch whose
// test fails is invalid.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err)
}

// readSlice returns the version of a slice, which is empty if there is none. It lists by name, because the agent has no
// right to get slices.
func (c *nodeClient) readSlice(ctx context.Context, name string) (storedSlice, error) {
	list := &metav1.PartialObjectMetadataList{}
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	raw, err := c.slices.Get().Resource(slicesResource).SetHeader("Accept", metadataListOnly).
		VersionedParams(&metav1.ListOptions{FieldSelector: selector}, metav1.ParameterCodec).Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(raw, list)
	}
	if err != nil {
		return storedSlice{}, fmt.Errorf("read the version of ProbeReport %s: %w", name, err)
	}
	c.setVersion(name, &metav1.ObjectMeta{})
	for i := range list.Items {
		c.setVersion(name, &list.Items[i].ObjectMeta)
	}
	return c.stored(name), nil
}

// replaceSlice replaces a stored slice: with an update, which takes the API server less time than a patch, unless it would
// remove what others have added.
func (c *nodeClient) replaceSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, stored storedSlice) (size int, err error) {
	if stored.shared {
		return c.patchSlice(ctx, slice, stored.version)
	}
	return c.putSlice(ctx, slice, stored.version)
}

// putSlice updates a slice that has the version, or creates it if the version is empty.
func (c *nodeClient) putSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, version string) (size int, err error) {
	request, verb := c.slices.Put().Name(slice.Name), "update"
	if version == "" {
		request, verb = c.slices.Post(), "create"
	}
	return c.sendSlice(ctx, request, verb, slice.Name, seamarkv1alpha1.ProbeReport{
		TypeMeta: metav1.TypeMeta{APIVersion: seamarkv1alpha1.GroupVersion().String(), Kind: "ProbeReport"},
		ObjectMeta: metav1.ObjectMeta{
			Name: slice.Name, ResourceVersion: version, OwnerReferences: slice.OwnerReferences,
		},
		NodeName: slice.NodeName, Pods: slice.Pods,
	})
}

// patchSlice replaces everything that the agent owns in a slice that has the version. It does not change nodeName, which is
// immutable.
func (c *nodeClient) patchSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, version string) (size int, err error) {
	return c.sendSlice(ctx, c.slices.Patch(types.JSONPatchType).Name(slice.Name), "patch", slice.Name, []operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: version},
		{Op: "add", Path: "/metadata/ownerReferences", Value: slice.OwnerReferences},
		{Op: "add", Path: "/pods", Value: slice.Pods},
	})
}

// sendSlice sends a write of a slice and records the new resourceVersion. After an error, the
// version is unknown.
func (c *nodeClient) sendSlice(ctx context.Context, request *rest.Request, verb, name string, content any) (size int, err error) {
	body, err := json.Marshal(content)
	if err != nil {
		return 0, fmt.Errorf("encode ProbeReport %s: %w", name, err)
	}
	raw, err := request.Resource(slicesResource).Param("fieldManager", fieldManager).
		SetHeader("Accept", metadataOnly).Body(body).Do(ctx).Raw()
	var written metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(raw, &written)
	}
	c.setVersion(name, &written.ObjectMeta)
	if err != nil {
		return len(body), fmt.Errorf("%s ProbeReport %s: %w", verb, name, err)
	}
	return len(body), nil
}

// DeleteSlice deletes a slice. It succeeds if there is none.
func (c *nodeClient) DeleteSlice(ctx context.Context, name string) error {
	c.setVersion(name, &metav1.ObjectMeta{})
	err := c.slices.Delete().Resource(slicesResource).Name(name).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ProbeReport %s: %w", name, err)
	}
	return nil
}

// storedSlice is what is known about a stored slice.
type storedSlice struct {
	// version is its resourceVersion, empty if it is not known.
	version string
	// shared is whether others, such as mutating webhooks, have added something to its metadata.
	shared bool
}

// stored returns what is known about a slice as last read or written.
func (c *nodeClient) stored(name string) storedSlice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[name]
}

// setVersion records a slice as it is stored, or that this is not known.
func (c *nodeClient) setVersion(name string, stored *metav1.ObjectMeta) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.versions, name)
	if stored.ResourceVersion != "" {
		c.versions[name] = storedSlice{
			version: stored.ResourceVersion, shared: len(stored.Labels)+len(stored.Annotations)+len(stored.Finalizers) > 0,
		}
	}
}
