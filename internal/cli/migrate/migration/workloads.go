// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manifest/schema"
	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// checkWorkloads returns the findings about workloads of one kind. The versions have the same schema.
func checkWorkloads(ctx context.Context, objects, markers []*unstructured.Unstructured) ([]Finding, error) {
	var found []Finding
	schemas := schema.Set{}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		kind := kinds.ByGroupKind(gvk.GroupKind())
		if !kind.Serves(gvk) {
			found = append(found, findingOf(Blocks, object, "apiVersion", serves+gvk.Version, serves+strings.Join(kind.Versions(), " and ")+" only",
				"convert the manifest to "+kind.Version+hooks()[kind.Kind].converting[gvk.Version]))
			continue
		}
		rules, err := schemas.Of(gvk)
		if err != nil {
			return nil, err
		}
		for _, err := range refused(ctx, rules, object) {
			f := findingOf(Blocks, object, err.Field, accepts, "refuses it: "+describe(object, err), "correct the field")
			if err.Field == "metadata.name" {
				f.Action = "create one with a shorter name, and delete this one"
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
			found = append(found, findingOf(Changes, set, "spec.selector.matchLabels."+key,
				fmt.Sprintf("pods leave the set when marker %s changes the label", marker.GetName()),
				"the same, with the condition SelectorMarked", "use another label in the marker"))
		}
	}
	return found
}

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
			sources, _, _ := unstructured.NestedSlice(fields, "labelsFrom")
			for _, source := range sources {
				fields, _ := source.(map[string]any)
				if key, _, _ := unstructured.NestedString(fields, "key"); key != "" {
					keys.Insert(key)
				}
			}
		}
	}
	return keys
}

// served returns the versions of a CRD that Seamark serves, the stored one first, none if it does not serve the kind.
func served(definition string) []string {
	if kind := kinds.ByName(definition); kind != nil {
		return kind.Versions()
	}
	if definition == "podprobemarkers.apps.kruise.io" || definition == "nodepodprobes.apps.kruise.io" {
		return []string{v1alpha1.GroupVersion().Version}
	}
	return nil
}

// instead returns what to do about kinds that Seamark replaces.
func instead() map[string]string {
	return map[string]string{
		"NodeImage":        "nothing: kubelets pull the images of ImagePullJobs, and step 7 of docs/migrate-from-openkruise.md deletes these objects",
		"ImageListPullJob": "create an ImagePullJob per image",
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
		versions := served(d.Name)
		switch others := slices.DeleteFunc(slices.Clone(d.Stored), func(v string) bool { return slices.Contains(versions, v) }); {
		case versions == nil:
			f.Level, f.OpenKruise, f.Seamark = Changes, "serves "+d.Kind+" objects", "does not serve this kind"
			f.Action = "keep OpenKruise for it, without seamark-workloads; step 7 of docs/migrate-from-openkruise.md would delete these objects"
			if action := instead()[d.Kind]; action != "" {
				f.Action = action
			}
		case len(others) > 0:
			f.Level, f.Field, f.OpenKruise = Blocks, "status.storedVersions", "may store objects in "+strings.Join(others, ", ")
			f.Seamark = "serves " + strings.Join(versions, " and ") + " only"
			f.Action = "migrate the storage to " + versions[0] + " with OpenKruise first (docs/migrate-from-openkruise.md#migrate-workloads)"
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}
