// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config/crd"
)

// oldest is the oldest version of Kubernetes that is supported.
const oldest = "1.32"

func (f *Facts) server() []Result {
	const name = "api-server"
	if f.Server.Err != nil {
		return []Result{unreadable(name, f.Server.Err)}
	}
	found, err := version.ParseGeneric(f.Server.Value)
	switch {
	case err != nil:
		return []Result{{Check: name, Verdict: Unknown, Evidence: fmt.Sprintf("version %q: %v", f.Server.Value, err)}}
	case found.LessThan(version.MustParseGeneric(oldest)):
		return []Result{{
			Check: name, Verdict: Failed, Evidence: "Kubernetes " + f.Server.Value + " is not supported",
			Fix: "upgrade the cluster to Kubernetes " + oldest + " or later",
		}}
	}
	return []Result{ok(name, "Kubernetes %s is supported (%s and later)", f.Server.Value, oldest)}
}

// definition is a CustomResourceDefinition of this version.
type definition struct {
	name string
	yaml []byte
	// path is the path of the definition in the repository.
	path string
	// workload is whether only seamark-workloads needs it.
	workload bool
}

func wanted() []definition {
	const bases, workloads = "config/crd/bases/", "config/crd/workloads/"
	return []definition{
		{"podprobemarkers.apps.kruise.io", crd.PodProbeMarkers(), bases + "apps.kruise.io_podprobemarkers.yaml", false},
		{"nodepodprobes.apps.kruise.io", crd.NodePodProbes(), bases + "apps.kruise.io_nodepodprobes.yaml", false},
		{"probereports.seamark.dev", crd.ProbeReports(), bases + "seamark.dev_probereports.yaml", false},
		{"clonesets.apps.kruise.io", crd.CloneSets(), workloads + "apps.kruise.io_clonesets.yaml", true},
		{"statefulsets.apps.kruise.io", crd.StatefulSets(), workloads + "apps.kruise.io_statefulsets.yaml", true},
	}
}

// definitions checks that the CRDs are served and are those of this version.
func (f *Facts) definitions() []Result {
	if f.CRDs.Err != nil {
		return []Result{unreadable("crds", f.CRDs.Err)}
	}
	workloads := f.deployment(workloadsName) != nil
	var results []Result
	for _, want := range wanted() {
		if want.workload && !workloads {
			continue
		}
		i := slices.IndexFunc(f.CRDs.Value, func(c apiextensionsv1.CustomResourceDefinition) bool { return c.Name == want.name })
		var found *apiextensionsv1.CustomResourceDefinition
		if i >= 0 {
			found = &f.CRDs.Value[i]
		}
		results = append(results, want.check(found))
	}
	return results
}

func (d definition) check(found *apiextensionsv1.CustomResourceDefinition) Result {
	r := Result{
		Check: "crd/" + d.name, Verdict: Failed,
		Fix: "kubectl apply --server-side --force-conflicts -f " + d.path,
	}
	if found == nil {
		r.Evidence = "the CRD does not exist"
		if d.workload {
			// The controller of the kind may be disabled.
			r.Verdict = Warning
		}
		return r
	}
	if reason := notServed(found); reason != "" {
		r.Evidence, r.Fix = reason, "kubectl describe crd "+d.name
		return r
	}
	path, err := d.difference(found)
	switch {
	case err != nil:
		r.Verdict, r.Evidence = Unknown, err.Error()
	case path != "":
		r.Verdict = Warning
		r.Evidence = "the schema is that of another version of Seamark or of OpenKruise: it differs in " + path
	default:
		return ok(r.Check, "established, with the schema of this version")
	}
	return r
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
func (d definition) difference(found *apiextensionsv1.CustomResourceDefinition) (string, error) {
	var want apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(d.yaml, &want); err != nil {
		return "", fmt.Errorf("read the CRD of this version: %w", err)
	}
	for i := range want.Spec.Versions {
		wanted := &want.Spec.Versions[i]
		j := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == wanted.Name })
		if j < 0 || !found.Spec.Versions[j].Served {
			return "spec.versions: version " + wanted.Name + " is not served", nil
		}
		a, errA := plain(wanted)
		b, errB := plain(&found.Spec.Versions[j])
		if err := firstError(errA, errB); err != nil {
			return "", err
		}
		if path := differ("spec.versions["+wanted.Name+"]", a, b); path != "" {
			return path, nil
		}
	}
	return "", nil
}

// plain returns the parts of the version that determine what the API server stores and serves.
func plain(v *apiextensionsv1.CustomResourceDefinitionVersion) (any, error) {
	encoded, err := json.Marshal(map[string]any{
		"schema": v.Schema, "subresources": v.Subresources, "selectableFields": v.SelectableFields,
	})
	if err != nil {
		return nil, fmt.Errorf("encode version %s of a CRD: %w", v.Name, err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		return nil, fmt.Errorf("decode version %s of a CRD: %w", v.Name, err)
	}
	return decoded, nil
}

// differ returns the path to the first difference of two JSON values, or nothing. It ignores
// descriptions of schemas, which are strings; a property with that name is an object.
func differ(path string, a, b any) string {
	mapA, isMapA := a.(map[string]any)
	mapB, isMapB := b.(map[string]any)
	if !isMapA || !isMapB {
		if equality.Semantic.DeepEqual(a, b) {
			return ""
		}
		return path
	}
	keys := slices.Collect(maps.Keys(mapA))
	for key := range mapB {
		if _, both := mapA[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key == "description" && !isObject(mapA[key]) && !isObject(mapB[key]) {
			continue
		}
		if found := differ(path+"."+key, mapA[key], mapB[key]); found != "" {
			return strings.NewReplacer(".schema.openAPIV3Schema", "", ".properties", "").Replace(found)
		}
	}
	return ""
}

func isObject(value any) bool {
	_, is := value.(map[string]any)
	return is
}
