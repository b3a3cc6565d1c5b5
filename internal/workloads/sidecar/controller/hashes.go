// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// hashes returns the annotations with the hashes of the revision that the set does not have. Clients of OpenKruise compare them
// with those of pods.
func hashes(set *v1alpha1.SidecarSet, revision *appsv1.ControllerRevision) map[string]string {
	missing := map[string]string{}
	for _, key := range []string{v1alpha1.SidecarSetHashKey, v1alpha1.SidecarSetHashWithoutImageKey} {
		if hash := revision.Annotations[key]; hash != "" && set.Annotations[key] != hash {
			missing[key] = hash
		}
	}
	return missing
}

// annotate writes the hashes of the revision that is in force. While OpenKruise serves the sets, its webhook does.
func (c *Controller) annotate(ctx context.Context, set *v1alpha1.SidecarSet, force *v1alpha1.SidecarSetInForce) error {
	if force == nil || force.Refused != "" || c.Pause.Active() {
		return nil
	}
	revision, cached := stored[*appsv1.ControllerRevision](c.Revisions, c.Namespace+"/"+force.Revision)
	if !cached {
		return nil // It has just been written, and enqueues the set.
	}
	missing := hashes(set, revision)
	if len(missing) == 0 {
		return nil
	}
	// The status has just been written, so the resource version is another one. A set of the same name is not this one.
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": set.UID, "annotations": missing}})
	if err != nil {
		return fmt.Errorf("encode the hashes of SidecarSet %s: %w", set.Name, err)
	}
	patched := &v1alpha1.SidecarSet{}
	patched.Name = set.Name
	if err := c.Client.Patch(ctx, patched, client.RawPatch(types.MergePatchType, body), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the hashes of SidecarSet %s: %w", set.Name, err))
	}
	return nil
}
