// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestStatusOfNewSets checks the status that clients see before a controller has written one, and that whoever applies a set again
// neither writes nor removes a status.
func TestStatusOfNewSets(t *testing.T) {
	t.Parallel()
	for kind, manifest := range map[string]string{"CloneSet": smallCloneSet, "StatefulSet": smallStatefulSet, "DaemonSet": smallDaemonSet} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace := server.Namespace(t)
			apply := func(edits ...edit) *unstructured.Unstructured {
				object := parsed(t, manifest, namespace, edits...)
				expect.NoError(t, server.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("user")))
				return object
			}
			status := func(object *unstructured.Unstructured) any { return object.Object["status"] }
			created := apply()
			none := map[string]any{"observedGeneration": int64(-1)}
			expect.Equal(t, "status in the answer to the creation", any(none), status(created))
			stored := created.DeepCopy()
			expect.NoError(t, server.Client.Get(t.Context(), client.ObjectKeyFromObject(created), stored))
			expect.Equal(t, "status of a new set", any(none), status(stored))
			for _, entry := range stored.GetManagedFields() {
				expect.Equal(t, "part of the set that somebody manages", "", entry.Subresource)
			}
			// A new set is stored without the status, which the API server adds when it reads one. The first update stores it.
			expect.Equal(t, "version after the set is applied twice again", apply().GetResourceVersion(), apply().GetResourceVersion())

			written := stored.DeepCopy()
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"observedGeneration": 1, "conditions": null}}`))
			expect.NoError(t, server.Client.Status().Patch(t.Context(), written, patch))
			changed := apply(edit{"spec.revisionHistoryLimit", 3})
			expect.Equal(t, "generation after a change", 2, changed.GetGeneration())
			expect.Equal(t, "status after a change", any(map[string]any{"observedGeneration": int64(1)}), status(changed))
			delete(changed.Object, "status")
			expect.NoError(t, server.Client.Update(t.Context(), changed))
			expect.Equal(t, "status after a client without it has updated the set", any(map[string]any{"observedGeneration": int64(1)}), status(changed))
		})
	}
}
