// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
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
			expect.NoError(t, server.Client.Create(t.Context(), stored))
			stored.Object["status"] = map[string]any{
				"matchedPods": int64(2), "succeeded": int64(1), "failed": int64(0), "unknown": int64(3), "conditions": tc.conditions,
			}
			if tc.conditions == nil {
				unstructured.RemoveNestedField(stored.Object, "status", "conditions")
			}
			expect.NoError(t, server.Client.Status().Update(t.Context(), stored))
			got := columns(t, v1alpha1.GroupVersion(), "podprobemarkers", stored)
			delete(got, "Age")
			want := map[string]any{"Name": stored.GetName(), "Matched": int64(2), "Succeeded": int64(1), "Failed": int64(0), "Unknown": int64(3), "Problem": tc.want}
			expect.Equal(t, want, got, "columns")
		})
	}
}

// TestColumnsOfPlansAndReports checks the columns of `kubectl get nodepodprobes,probeplans,probereports`.
func TestColumnsOfPlansAndReports(t *testing.T) {
	t.Parallel()
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
	part := &seamarkv1alpha1.ProbePlan{
		ObjectMeta: metav1.ObjectMeta{Name: "columns.7"}, NodeName: "columns", Pods: []v1alpha1.PodProbe{{Namespace: "ns", Name: "pod-0", UID: "u"}},
	}
	report := slice("columns", "columns.0", 3, "Succeeded")
	for _, object := range []client.Object{plan, part, report} {
		expect.NoError(t, server.Client.Create(t.Context(), object))
	}
	unreported := columns(t, v1alpha1.GroupVersion(), "nodepodprobes", plan)
	plan.Status = v1alpha1.NodePodProbeStatus{ObservedGeneration: 1, Pods: 3, Probes: 4, ProbeReports: true}
	expect.NoError(t, server.Client.Status().Update(t.Context(), plan))
	inForce := columns(t, v1alpha1.GroupVersion(), "nodepodprobes", plan)
	first := columns(t, seamarkv1alpha1.GroupVersion(), "probereports", report)
	report.Pods = nil
	expect.NoError(t, server.Client.Update(t.Context(), report))
	empty := columns(t, seamarkv1alpha1.GroupVersion(), "probereports", report)
	planned := columns(t, seamarkv1alpha1.GroupVersion(), "probeplans", part)
	for _, row := range []map[string]any{unreported, inForce, planned, first, empty} {
		if _, ok := row["Age"].(string); !ok {
			t.Errorf("age %v, want a string", row["Age"])
		}
		delete(row, "Age")
	}
	for _, row := range []map[string]any{first, empty} {
		if written, ok := row["Written"].(string); !ok || !strings.HasSuffix(written, "s") {
			t.Errorf("written %v, want seconds", row["Written"])
		}
		delete(row, "Written")
	}
	got := []map[string]any{unreported, inForce, planned, first, empty}
	want := []map[string]any{
		{"Name": "columns", "Pods": nil, "Probes": nil, "In force": nil},
		{"Name": "columns", "Pods": int64(3), "Probes": int64(4), "In force": int64(1)},
		{"Name": "columns.7", "Node": "columns", "First pod": "pod-0", "Generation": int64(1)},
		{"Name": "columns.0", "Node": "columns", "First pod": "pod-0"},
		{"Name": "columns.0", "Node": "columns", "First pod": nil},
	}
	expect.Equal(t, want, got, "columns")
}

// columns returns the columns of an object by name, as kubectl receives them.
func columns(t *testing.T, version schema.GroupVersion, resource string, object client.Object) map[string]any {
	t.Helper()
	config := rest.CopyConfig(server.Config)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	config.ContentType = "application/json"
	kubernetes, err := rest.RESTClientFor(config)
	expect.NoError(t, err)
	table := &metav1.Table{}
	err = kubernetes.Get().NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").Resource(resource).Name(object.GetName()).
		Do(t.Context()).Into(table)
	expect.NoError(t, err)
	found := map[string]any{}
	for i, definition := range table.ColumnDefinitions {
		found[definition.Name] = table.Rows[0].Cells[i]
	}
	return found
}
