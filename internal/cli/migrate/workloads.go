// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/manifest/schema"
)

// workloadKind is a kind of workloads that seamark-workloads serves.
type workloadKind struct {
	kind string
	// versions have the same schema.
	versions   []string
	definition []byte
	objects    []*unstructured.Unstructured
}

func (k workloadKind) check(ctx context.Context, markers []*unstructured.Unstructured) ([]Finding, error) {
	if len(k.objects) == 0 {
		return nil, nil
	}
	rules, err := schema.New(k.definition, k.versions[0])
	if err != nil {
		return nil, fmt.Errorf("load the schema of %s: %w", k.kind, err)
	}
	var found []Finding
	for _, object := range k.objects {
		if version := object.GroupVersionKind().Version; !slices.Contains(k.versions, version) {
			f := findingOf(Blocks, object)
			f.Field, f.OpenKruise, f.Seamark = "apiVersion", "serves "+version, "serves "+strings.Join(k.versions, " and ")+" only"
			f.Action = "convert the manifest to " + k.versions[0]
			found = append(found, f)
			continue
		}
		for _, err := range refused(ctx, rules, object) {
			f := findingOf(Blocks, object)
			f.Field, f.OpenKruise, f.Seamark = err.Field, "accepts it", "refuses it: "+describe(err)
			f.Action = "correct the field"
			if err.Field == "metadata.name" {
				f.Action = "create a set with a shorter name, and delete this one"
			}
			found = append(found, f)
		}
		found = append(found, markedSelector(object, markers)...)
	}
	return found, nil
}

// markedSelector returns the keys of a set's selector that a marker writes in its pods.
func markedSelector(set *unstructured.Unstructured, markers []*unstructured.Unstructured) []Finding {
	selector, _, _ := unstructured.NestedMap(set.Object, "spec", "selector", "matchLabels")
	var found []Finding
	for _, marker := range markers {
		if marker.GetNamespace() != set.GetNamespace() {
			continue
		}
		for _, key := range sets.List(labelsOf(marker)) {
			if _, selects := selector[key]; !selects {
				continue
			}
			f := findingOf(Changes, set)
			f.Field = "spec.selector.matchLabels." + key
			f.OpenKruise = fmt.Sprintf("pods leave the set when marker %s changes the label", marker.GetName())
			f.Seamark = "the same, with the condition SelectorMarked"
			f.Action = "use another label in the marker"
			found = append(found, f)
		}
	}
	return found
}

// labelsOf returns the labels that the marker sets.
func labelsOf(marker *unstructured.Unstructured) sets.Set[string] {
	keys := sets.New[string]()
	probes, _, _ := unstructured.NestedSlice(marker.Object, "spec", "probes")
	for _, probe := range probes {
		fields, _ := probe.(map[string]any)
		policies, _, _ := unstructured.NestedSlice(fields, "markerPolicy")
		for _, policy := range policies {
			fields, _ := policy.(map[string]any)
			labels, _, _ := unstructured.NestedMap(fields, "labels")
			for key := range labels {
				keys.Insert(key)
			}
		}
	}
	return keys
}

// served are the versions of the CRDs that Seamark serves, the stored one first.
func served() map[string][]string {
	return map[string][]string{
		"podprobemarkers.apps.kruise.io": {"v1alpha1"},
		"nodepodprobes.apps.kruise.io":   {"v1alpha1"},
		"clonesets.apps.kruise.io":       {"v1alpha1"},
		"statefulsets.apps.kruise.io":    {"v1beta1", "v1alpha1"},
	}
}

// checkDefinitions finds objects that are stored in another version than Seamark serves, and kinds
// that Seamark does not serve.
func checkDefinitions(definitions []Definition) []Finding {
	var found []Finding
	for _, d := range definitions {
		if !d.Objects {
			continue
		}
		f := Finding{Kind: "CustomResourceDefinition", Name: d.Name}
		versions, isServed := served()[d.Name]
		switch others := slices.DeleteFunc(slices.Clone(d.Stored), func(v string) bool { return slices.Contains(versions, v) }); {
		case !isServed:
			f.Level, f.OpenKruise, f.Seamark = Changes, "serves "+d.Kind+" objects", "does not serve this kind"
			f.Action = "keep OpenKruise for it, without seamark-workloads; step 7 of docs/migrate-from-openkruise.md would delete these objects"
		case len(others) > 0:
			f.Level, f.Field, f.OpenKruise = Blocks, "status.storedVersions", "may store objects in "+strings.Join(others, ", ")
			f.Seamark = "serves " + strings.Join(versions, " and ") + " only"
			f.Action = "migrate the storage to " + versions[0] + " with OpenKruise first (docs/migrate-workloads.md)"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
