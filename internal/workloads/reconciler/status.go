// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// WriteStatus writes the status of after, a copy of before, and reports whether it did: not if the object is gone. after is
// replaced by the answer of the API server. The patch has only the fields that differ, so that it keeps those of the status
// that the types do not have.
func WriteStatus(
	ctx context.Context, to client.Client, metrics Metrics, kind string, before, after client.Object, options ...client.MergeFromOption,
) (bool, error) {
	err := to.Status().Patch(ctx, after, client.MergeFromWithOptions(before, options...), client.FieldOwner(v1alpha1.FieldManager))
	if err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("write the status of %s %s: %w", kind, client.ObjectKeyFromObject(before), err))
	}
	metrics.StatusWritten(kind)
	return true, nil
}

// mergeStatus writes the fields into the status of the version of the object, and returns the resource version of the result,
// empty if the object has changed or is gone. The patch is a merge patch: server-side apply fails on an object that does not
// fit its schema. Only the metadata of the answer are decoded: a set is as large as its template.
func mergeStatus(ctx context.Context, to client.Client, kind schema.GroupVersionKind, object client.Object, fields map[string]any) (string, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": object.GetResourceVersion()},
		"status":   fields,
	})
	if err != nil {
		return "", fmt.Errorf("encode the status: %w", err)
	}
	stored := &metav1.PartialObjectMetadata{}
	stored.SetGroupVersionKind(kind)
	stored.SetNamespace(object.GetNamespace())
	stored.SetName(object.GetName())
	err = to.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("write the status: %w", err)
	}
	return stored.GetResourceVersion(), nil
}
