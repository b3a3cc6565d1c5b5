// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config"
)

// oldest is the oldest version of Kubernetes that is supported.
const oldest = "1.32"

func (f *Facts) server() []Result {
	const name = "api-server"
	if f.Server.Err != nil {
		return unreadable(name, f.Server.Err)
	}
	found, err := version.ParseGeneric(f.Server.Value)
	switch {
	case err != nil:
		return []Result{{Check: name, Verdict: Unknown, Evidence: fmt.Sprintf("version %q: %v", f.Server.Value, err)}}
	case found.LessThan(version.MustParseGeneric(oldest)):
		return failed(name, "upgrade the cluster to Kubernetes "+oldest+" or later", "Kubernetes %s is not supported", f.Server.Value)
	}
	return ok(name, "Kubernetes %s is supported (%s and later)", f.Server.Value, oldest)
}

// definitions checks that the CRDs are served and are those of this version.
func (f *Facts) definitions() []Result {
	if f.CRDs.Err != nil {
		return unreadable("crds", f.CRDs.Err)
	}
	var results []Result
	for _, name := range []string{"podprobemarkers.apps.kruise.io", "nodepodprobes.apps.kruise.io", "probeplans.seamark.dev", "probereports.seamark.dev"} {
		results = append(results, definition(name, named(f.CRDs.Value, name), failed)...)
	}
	missing := failed
	enabled, assumed := f.enabled()
	if assumed {
		missing = warning // The controller of the kind may be disabled.
	}
	for _, kind := range enabled {
		results = append(results, definition(kind.Definition(), named(f.CRDs.Value, kind.Definition()), missing)...)
	}
	return results
}

// definition checks a CRD, which is nil if it does not exist. missing returns the result for that.
func definition(name string, found *apiextensionsv1.CustomResourceDefinition, missing func(check, fix, evidence string, args ...any) []Result) []Result {
	check, fix := "crd/"+name, "kubectl apply --server-side --force-conflicts -f config/"+config.DefinitionPath(name)
	if found == nil {
		return missing(check, fix, "the CRD does not exist")
	}
	if reason := notServed(found); reason != "" {
		return failed(check, "kubectl describe crd "+name, "%s", reason)
	}
	path, err := difference(name, found)
	switch {
	case err != nil:
		return []Result{{Check: check, Verdict: Unknown, Evidence: err.Error(), Fix: fix}}
	case path != "":
		return warning(check, fix, "the schema is that of another version of Seamark or of OpenKruise: it differs in %s", path)
	}
	return ok(check, "established, with the schema of this version")
}

// notServed returns why the API server does not serve the CRD, or nothing.
func notServed(found *apiextensionsv1.CustomResourceDefinition) string {
	if found.DeletionTimestamp != nil {
		return "the CRD is being deleted"
	}
	established := false
	for _, c := range found.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return "the names are not accepted: " + c.Message
		case c.Type == apiextensionsv1.Established:
			established = c.Status == apiextensionsv1.ConditionTrue
		}
	}
	if !established {
		return "the CRD is not established"
	}
	return ""
}

// difference returns the path to the first field in which the versions of the CRDs differ, or
// nothing. Descriptions and printed columns do not matter.
func difference(name string, found *apiextensionsv1.CustomResourceDefinition) (string, error) {
	var want apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(config.Definition(name), &want); err != nil {
		return "", fmt.Errorf("read the CRD of this version: %w", err)
	}
	for i := range want.Spec.Versions {
		wanted := &want.Spec.Versions[i]
		j := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == wanted.Name })
		if j < 0 || !found.Spec.Versions[j].Served {
			return "spec.versions: version " + wanted.Name + " is not served", nil
		}
		a, errA := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
		b, errB := runtime.DefaultUnstructuredConverter.ToUnstructured(&found.Spec.Versions[j])
		if err := firstError(errA, errB); err != nil {
			return "", fmt.Errorf("convert version %s of a CRD: %w", wanted.Name, err)
		}
		// Only these determine what the API server stores and serves.
		for _, field := range []string{"schema", "selectableFields", "subresources"} {
			if path := differ("spec.versions["+wanted.Name+"]."+field, a[field], b[field]); path != "" {
				return strings.NewReplacer(".schema.openAPIV3Schema", "", ".properties", "").Replace(path), nil
			}
		}
	}
	return "", nil
}

// differ returns the path to the first difference of two JSON values, or nothing. It ignores
// descriptions of schemas, which are strings; a property with that name is an object.
func differ(path string, a, b any) string {
	mapA, isMapA := a.(map[string]any)
	mapB, isMapB := b.(map[string]any)
	if !isMapA || !isMapB {
		if equality.Semantic.DeepEqual(a, b) || !isMapA && !isMapB && strings.HasSuffix(path, ".description") {
			return ""
		}
		return path
	}
	for _, key := range sets.List(sets.KeySet(mapA).Union(sets.KeySet(mapB))) {
		if found := differ(path+"."+key, mapA[key], mapB[key]); found != "" {
			return found
		}
	}
	return ""
}
