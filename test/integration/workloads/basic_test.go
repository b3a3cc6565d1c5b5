// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// TestOlderVersionOfStatefulSets writes a set in v1alpha1, and gives its pods and revisions the owner
// references that earlier releases of OpenKruise wrote.
func TestOlderVersionOfStatefulSets(t *testing.T) {
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	stop := w.start()
	set := w.statefulSet("db", 3, parallel)
	w.settled(set, 3, "image:1")
	stop()
	before := w.stored("db")
	var revisions appsv1.ControllerRevisionList
	w.List(&revisions)
	owned := []client.Object{&revisions.Items[0]}
	for _, pod := range before {
		owned = append(owned, pod)
	}
	for _, object := range owned {
		w.Must(w.Client.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/metadata/ownerReferences/0/apiVersion", "value": "apps.kruise.io/v1alpha1"}]`))))
	}

	w.start()
	older := &unstructured.Unstructured{}
	older.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("StatefulSet"))
	older.SetNamespace(w.Namespace)
	older.SetName("db")
	w.Patch(older, `{"spec":{"replicas":4}}`)
	w.settled(set, 4, "image:1")
	after := w.stored("db")
	for name, pod := range before {
		if after[name] == nil || after[name].UID != pod.UID {
			t.Errorf("pod %s is another one, want that with the owner reference of v1alpha1", name)
		}
	}
	w.Patch(older, `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}}`)
	w.settled(set, 2, "image:2")
	w.Get(older)
	if updated, _, _ := unstructured.NestedInt64(older.Object, "status", "updatedAvailableReplicas"); updated != 2 {
		t.Errorf("the status of v1alpha1 has %d updated pods that are available, want 2", updated)
	}
}
