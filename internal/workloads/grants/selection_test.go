// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestSelectionEvents checks which namespaces are decided on again after a SidecarSet changes: those that it selects or has
// selected, and none if something else has changed.
func TestSelectionEvents(t *testing.T) {
	namespaces := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, nil)
	for name, labels := range map[string]map[string]string{"a": {"team": "x"}, "b": {"team": "x"}, "c": nil} {
		if err := namespaces.GetIndexer().Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(spec, status map[string]any) any {
		trimmed, err := trimSidecarSet(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "set"}, "spec": spec, "status": status}})
		if err != nil {
			t.Fatal(err)
		}
		return trimmed
	}
	none := map[string]any{}
	team := map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "x"}}}
	one := map[string]any{"namespace": "c"}
	for name, test := range map[string]struct {
		before, after any
		want          []string
	}{
		"new":                 {nil, set(team, none), []string{"a", "b"}},
		"for all":             {nil, set(none, none), []string{"a", "b", "c"}},
		"moves":               {set(team, none), set(one, none), []string{"a", "b", "c"}},
		"rolls out":           {set(team, map[string]any{"updatedPods": int64(1)}), set(team, map[string]any{"updatedPods": int64(2)}), nil},
		"updates no pods":     {nil, set(map[string]any{"namespace": "c", "updateStrategy": map[string]any{"type": "NotUpdate"}}, none), nil},
		"cannot be decoded":   {nil, set(map[string]any{"namespace": int64(1)}, none), nil},
		"is in force in more": {set(one, none), set(one, map[string]any{"inForce": map[string]any{"namespace": "a"}}), []string{"a", "c"}},
		"gone":                {set(one, none), nil, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			events := (&world{namespaces: namespaces}).selectionEvents(func(namespace string) { got = append(got, namespace) })
			switch {
			case test.before == nil:
				events.OnAdd(test.after, false)
			case test.after == nil:
				events.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: test.before})
			default:
				events.OnUpdate(test.before, test.after)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("namespaces (-want +got):\n%s", diff)
			}
		})
	}
}
