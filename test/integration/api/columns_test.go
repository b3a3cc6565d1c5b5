// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// TestColumnsShowProblems checks the columns of `kubectl get podprobemarkers`. Markers that
// OpenKruise has reconciled have no conditions.
func TestColumnsShowProblems(t *testing.T) {
	t.Parallel()
	condition := func(kind, status, reason string) any {
		return map[string]any{
			"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}
	}
	for name, tc := range map[string]struct {
		conditions []any
		want       any
	}{
		"no conditions": {nil, nil},
		"fine": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "True", "Resolved"),
			condition(v1alpha1.ConditionMarksExclusive, "True", "Exclusive"),
		}, nil},
		"conflict": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "True", "Resolved"),
			condition(v1alpha1.ConditionMarksExclusive, "False", "KeyConflict"),
		}, "KeyConflict"},
		"two problems": {[]any{
			condition(v1alpha1.ConditionProbesResolved, "False", "ContainerNotFound"),
			condition(v1alpha1.ConditionMarksExclusive, "False", "KeyConflict"),
		}, "ContainerNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := marker(t, server.Namespace(t))
			if err := server.Client.Create(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			stored.Object["status"] = map[string]any{"matchedPods": int64(2), "conditions": tc.conditions}
			if tc.conditions == nil {
				unstructured.RemoveNestedField(stored.Object, "status", "conditions")
			}
			if err := server.Client.Status().Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			got := columns(t, stored)
			delete(got, "Age")
			want := map[string]any{"Name": stored.GetName(), "Matched": int64(2), "Problem": tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// columns returns the columns of an object by name, as kubectl receives them.
func columns(t *testing.T, object client.Object) map[string]any {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	version := v1alpha1.GroupVersion()
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	config.ContentType = "application/json"
	kubernetes, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	err = kubernetes.Get().Namespace(object.GetNamespace()).Resource("podprobemarkers").Name(object.GetName()).
		Do(t.Context()).Into(table)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for i, definition := range table.ColumnDefinitions {
		found[definition.Name] = table.Rows[0].Cells[i]
	}
	return found
}
