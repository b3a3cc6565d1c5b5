// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	"github.com/seamark-dev/seamark/test/expect"
)

// The smallest valid workloads.
const (
	smallCloneSet = `
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: game}
spec:
  selector: {matchLabels: {app: game}}
  template:
    metadata: {labels: {app: game}}
    spec: {containers: [{name: server, image: game:1}]}
`
	smallStatefulSet = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: server, image: db:1}]}
`
)

// TestDefaultsOfWorkloads checks every field that the API server sets: no webhook sets any.
func TestDefaultsOfWorkloads(t *testing.T) {
	t.Parallel()
	rolling := map[string]any{"partition": int64(0), "maxUnavailable": int64(1), "podUpdatePolicy": "ReCreate", "minReadySeconds": int64(0)}
	for name, tc := range map[string]struct {
		manifest string
		edits    []edit
		want     map[string]any
	}{
		"CloneSet": {smallCloneSet, nil, map[string]any{
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "minReadySeconds": int64(0),
			"scaleStrategy": map[string]any{},
			"updateStrategy": map[string]any{
				"type": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0),
			},
		}},
		"CloneSet with empty strategies": {
			smallCloneSet,
			[]edit{{"spec.updateStrategy", map[string]any{"inPlaceUpdateStrategy": map[string]any{}}}, {"spec.scaleStrategy", map[string]any{}}},
			map[string]any{
				"replicas": int64(1), "revisionHistoryLimit": int64(10), "minReadySeconds": int64(0),
				"scaleStrategy": map[string]any{},
				"updateStrategy": map[string]any{
					"type": "ReCreate", "partition": int64(0), "maxUnavailable": "20%", "maxSurge": int64(0),
					"inPlaceUpdateStrategy": map[string]any{"gracePeriodSeconds": int64(0)},
				},
			},
		},
		"StatefulSet": {smallStatefulSet, nil, map[string]any{
			"replicas": int64(1), "revisionHistoryLimit": int64(10), "podManagementPolicy": "OrderedReady",
			"updateStrategy":                       map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling},
			"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"},
		}},
		"StatefulSet with empty structures": {
			smallStatefulSet,
			[]edit{
				{"spec.updateStrategy", map[string]any{"rollingUpdate": map[string]any{}}}, {"spec.ordinals", map[string]any{}},
				{"spec.persistentVolumeClaimRetentionPolicy", map[string]any{"whenScaled": "Delete"}},
			},
			map[string]any{
				"replicas": int64(1), "revisionHistoryLimit": int64(10), "podManagementPolicy": "OrderedReady",
				"updateStrategy":                       map[string]any{"type": "RollingUpdate", "rollingUpdate": rolling},
				"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Retain", "whenScaled": "Delete"},
				"ordinals":                             map[string]any{"start": int64(0)},
			},
		},
		// Clients read rollingUpdate without asking for the type.
		"StatefulSet with OnDelete": {
			smallStatefulSet, []edit{{"spec.updateStrategy", map[string]any{"type": "OnDelete"}}}, map[string]any{
				"replicas": int64(1), "revisionHistoryLimit": int64(10), "podManagementPolicy": "OrderedReady",
				"updateStrategy":                       map[string]any{"type": "OnDelete", "rollingUpdate": rolling},
				"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, tc.manifest, server.Namespace(t), tc.edits...)
			expect.NoError(t, create(t.Context(), object))
			spec, _, err := unstructured.NestedMap(object.Object, "spec")
			expect.NoError(t, err)
			delete(spec, "selector")
			delete(spec, "template")
			expect.Equal(t, "spec", tc.want, spec)
		})
	}
}

// TestTypedClientsKeepDefaults checks that an update by a client with Go types, which omits zero
// values, does not change the generation.
func TestTypedClientsKeepDefaults(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	for _, tc := range []struct {
		manifest string
		typed    client.Object
	}{
		{smallCloneSet, &v1alpha1.CloneSet{}}, {smallStatefulSet, &v1beta1.StatefulSet{}}, {smallDaemonSet, &v1alpha1.DaemonSet{}}, {smallBroadcastJob, &v1alpha1.BroadcastJob{}},
	} {
		object := parsed(t, tc.manifest, namespace)
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, tc.typed))
		expect.NoError(t, server.Client.Create(t.Context(), tc.typed))
		tc.typed.SetAnnotations(map[string]string{"a": "b"})
		expect.NoError(t, server.Client.Update(t.Context(), tc.typed))
		expect.Equal(t, fmt.Sprintf("%s: generation after an update of annotations", object.GetKind()), 1, tc.typed.GetGeneration())
	}
}

func TestWorkloadsScale(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	for _, manifest := range []string{smallCloneSet, smallStatefulSet} {
		object := parsed(t, manifest, namespace)
		expect.NoError(t, server.Client.Create(t.Context(), object))
		object.Object["status"] = map[string]any{
			"replicas": int64(3), "readyReplicas": int64(2), "availableReplicas": int64(1), "updatedReplicas": int64(2),
			"updatedReadyReplicas": int64(1), "currentReplicas": int64(0), "labelSelector": "app=x",
		}
		if object.GetKind() == "CloneSet" {
			unstructured.RemoveNestedField(object.Object, "status", "currentReplicas")
		}
		expect.NoError(t, server.Client.Status().Update(t.Context(), object))
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
		typed := newTyped(t, object)
		expect.NoError(t, server.Client.SubResource("scale").Update(t.Context(), typed, client.WithSubResourceBody(scale)))
		expect.NoError(t, server.Client.SubResource("scale").Get(t.Context(), typed, scale))
		want := autoscalingv1.ScaleStatus{Replicas: 3, Selector: "app=x"}
		if scale.Spec.Replicas != 7 || scale.Status != want {
			t.Errorf("%s: scale %+v %+v, want 7 replicas and %+v", object.GetKind(), scale.Spec, scale.Status, want)
		}
	}
}

// newTyped returns a typed object with the name and namespace.
func newTyped(t *testing.T, object *unstructured.Unstructured) client.Object {
	t.Helper()
	typed, err := server.Client.Scheme().New(object.GroupVersionKind())
	expect.NoError(t, err)
	named, ok := typed.(client.Object)
	if !ok {
		t.Fatalf("%T is not an object", typed)
	}
	named.SetName(object.GetName())
	named.SetNamespace(object.GetNamespace())
	return named
}

// TestWorkloadColumns checks the columns of `kubectl get clonesets,asts -o wide`: those of OpenKruise.
func TestWorkloadColumns(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t)
	clone, sts := parsed(t, smallCloneSet, namespace), parsed(t, smallStatefulSet, namespace)
	for _, object := range []*unstructured.Unstructured{clone, sts} {
		expect.NoError(t, server.Client.Create(t.Context(), object))
		object.Object["status"] = map[string]any{
			"replicas": int64(3), "readyReplicas": int64(2), "availableReplicas": int64(1),
			"updatedReplicas": int64(2), "updatedReadyReplicas": int64(1), "updatedAvailableReplicas": int64(1), "labelSelector": "app=x",
		}
		if object == sts {
			unstructured.RemoveNestedField(object.Object, "status", "updatedReadyReplicas")
		}
		expect.NoError(t, server.Client.Status().Update(t.Context(), object))
	}
	expectColumns(t, v1alpha1.GroupVersion(), "clonesets", clone, map[string]any{
		"Name": "game", "DESIRED": int64(1), "UPDATED": int64(2), "UPDATED_READY": int64(1), "UPDATED_AVAILABLE": int64(1), "READY": int64(2),
		"TOTAL": int64(3), "CONTAINERS": "server", "IMAGES": "game:1", "SELECTOR": "app=x",
	})
	expectColumns(t, v1beta1.GroupVersion(), "statefulsets", sts, map[string]any{
		"Name": "db", "DESIRED": int64(1), "CURRENT": int64(3), "UPDATED": int64(2), "READY": int64(2),
		"CONTAINERS": "server", "IMAGES": "db:1",
	})
}

func TestImmutableFieldsOfWorkloads(t *testing.T) {
	t.Parallel()
	const immutable = "field is immutable: delete the set and create a new one"
	const claims = "must not be added, removed or renamed if volumeClaimUpdateStrategy.type is OnPodRollingUpdate"
	labels := edit{"spec.template.metadata.labels.app2", "x"}
	onUpdate := edit{"spec.volumeClaimUpdateStrategy.type", "OnPodRollingUpdate"}
	onUpdateNew := edit{"spec.volumeClaimUpdateStrategy", map[string]any{"type": "OnPodRollingUpdate"}}
	for name, tc := range map[string]struct {
		manifest string
		want     rejection
	}{
		"CloneSet selector": {
			smallCloneSet, one("spec.selector", map[string]any{"matchLabels": map[string]any{"app2": "x"}}, immutable).with(labels),
		},
		"StatefulSet selector": {
			smallStatefulSet, one("spec.selector", map[string]any{"matchLabels": map[string]any{"app2": "x"}}, immutable).with(labels),
		},
		"StatefulSet policy":           {smallStatefulSet, one("spec.podManagementPolicy", "Parallel", immutable)},
		"StatefulSet new service name": {smallStatefulSet, one("spec.serviceName", "db", immutable)},
		"StatefulSet service name":     {validStatefulSet, one("spec.serviceName", "other", immutable)},
		"StatefulSet claims, renamed": {
			validStatefulSet, one("spec.volumeClaimTemplates[0].metadata.name", "other", claims).with(onUpdate).at("spec.volumeClaimTemplates"),
		},
		"StatefulSet claims, removed": {validStatefulSet, one("spec.volumeClaimTemplates", remove{}, claims).with(onUpdate)},
		"StatefulSet claims, added": {
			smallStatefulSet, one(
				"spec.volumeClaimTemplates", []any{map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}}, claims,
			).with(onUpdateNew),
		},
		"StatefulSet no service name": {validStatefulSet, one("spec.serviceName", remove{}, immutable)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parsed(t, tc.manifest, server.Namespace(t))
			expect.NoError(t, server.Client.Create(t.Context(), object))
			for _, e := range tc.want.edits {
				expect.NoError(t, e.apply(object.Object))
			}
			err := client.WithFieldValidation(server.Client, metav1.FieldValidationStrict).Update(t.Context(), object)
			expectRejection(t, err, tc.want)
		})
	}
}

// TestServiceNameMayBeOmitted updates a set that was created with an empty service name as a Go client
// does: it omits the field.
func TestServiceNameMayBeOmitted(t *testing.T) {
	t.Parallel()
	object := parsed(t, smallStatefulSet, server.Namespace(t), edit{"spec.serviceName", ""})
	expect.NoError(t, server.Client.Create(t.Context(), object))
	unstructured.RemoveNestedField(object.Object, "spec", "serviceName")
	expect.Success(t, server.Client.Update(t.Context(), object))
}

// TestTemplatesKeepOnlyTheirFields writes a template as `kubectl kruise rollout undo` does: with $patch. Below the fields of the
// template, unknown fields are kept.
func TestTemplatesKeepOnlyTheirFields(t *testing.T) {
	t.Parallel()
	for kind, manifest := range map[string]string{"CloneSet": smallCloneSet, "StatefulSet": smallStatefulSet} {
		set := parsed(t, manifest, server.Namespace(t), edit{"spec.template.$patch", "replace"}, edit{"spec.template.spec.newer", "kept"})
		expect.NoError(t, server.Client.Create(t.Context(), set, client.DryRunAll))
		template, _, err := unstructured.NestedMap(set.Object, "spec", "template")
		expect.NoError(t, err)
		if _, has := template["$patch"]; has {
			t.Errorf("%s: the template is stored with $patch", kind)
		}
		if newer, _, err := unstructured.NestedString(template, "spec", "newer"); err != nil || newer != "kept" {
			t.Errorf("%s: the field newer of the pods is %q, want kept", kind, newer)
		}
	}
}
