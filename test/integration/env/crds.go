// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

func (o options) crds() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if o.noCRDs {
		return nil, nil
	}
	crds, err := ReadCRDs(o.crdDir)
	if err != nil {
		return nil, err
	}
	for i := range crds {
		if o.unvalidated || o.upstream && crds[i].Spec.Group == v1alpha1.GroupName {
			crds[i] = Upstream(crds[i])
		}
		if !o.types {
			for _, version := range crds[i].Spec.Versions {
				withoutTypes(version.Schema.OpenAPIV3Schema)
			}
		}
	}
	return crds, nil
}

// ReadCRDs returns the CRDs in the YAML files of the folder, in the order of the file names.
// An empty path means all generated CRDs; a relative path starts at the module's root. Unknown
// fields are an error.
func ReadCRDs(dir string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := crdFiles(cmp.Or(dir, "config/crd/*"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no CRD in %s: run `make generate`", cmp.Or(dir, "config/crd"))
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read CRD: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("read CRD %s: %w", path, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// crdFiles returns the paths of the CRDs in the folders that the pattern matches.
func crdFiles(folders string) ([]string, error) {
	if !filepath.IsAbs(folders) {
		root, err := ModuleRoot()
		if err != nil {
			return nil, err
		}
		folders = filepath.Join(root, folders)
	}
	files, err := filepath.Glob(filepath.Join(folders, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the CRDs of %s: %w", folders, err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == "kustomization.yaml" }), nil
}

// Upstream returns the CRD as OpenKruise has it: without the fields that Seamark adds, without
// validation except for types and required fields, and for workloads without defaults, which
// OpenKruise's webhooks set.
func Upstream(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		schema := version.Schema.OpenAPIV3Schema
		stripRules(schema, crd.Spec.Names.Kind == "CloneSet" || crd.Spec.Names.Kind == "StatefulSet")
		for _, field := range additions(crd.Spec.Names.Kind) {
			removeField(schema, strings.Split(field, "."))
		}
		if status, has := schema.Properties["status"]; has {
			status.Default = nil
			schema.Properties["status"] = status
		}
		version.AdditionalPrinterColumns = nil
	}
	return crd
}

// additions returns the paths of the fields of a kind that Seamark adds. A path goes through the
// items of lists.
func additions(kind string) []string {
	switch kind {
	case "PodProbeMarker":
		return []string{"status.conditions"}
	case "CloneSet":
		return []string{"status.podSerial"}
	case "StatefulSet", "DaemonSet":
		return []string{"spec.progressDeadlineSeconds"}
	case "NodePodProbe":
		return []string{
			"spec.podProbes.runtimeUID",
			"spec.podProbes.probes.plan", "spec.podProbes.probes.publishBody", "spec.podProbes.probes.messageUpdates", "spec.podProbes.probes.startup",
			"status.observedGeneration", "status.pods", "status.probes", "status.probeReports",
			"status.podProbeStatuses.probeStates.plan", "status.podProbeStatuses.probeStates.containerID",
		}
	default:
		return nil
	}
}

func removeField(schema *apiextensionsv1.JSONSchemaProps, path []string) {
	if schema.Items != nil && schema.Items.Schema != nil {
		schema = schema.Items.Schema
	}
	if len(path) == 1 {
		delete(schema.Properties, path[0])
		return
	}
	property := schema.Properties[path[0]]
	removeField(&property, path[1:])
	schema.Properties[path[0]] = property
}

// stripRules removes from a schema, recursively, everything that rejects a value of the right
// type, and the defaults if defaults is set. What a structural schema requires remains.
func stripRules(schema *apiextensionsv1.JSONSchemaProps, defaults bool) {
	if defaults {
		schema.Default = nil
	}
	schema.XValidations = nil
	schema.XListType, schema.XListMapKeys = nil, nil
	schema.XMapType = nil
	schema.Pattern, schema.Enum = "", nil
	schema.MinLength, schema.MaxLength = nil, nil
	schema.MinItems, schema.MaxItems = nil, nil
	schema.MinProperties, schema.MaxProperties = nil, nil
	schema.Minimum, schema.Maximum = nil, nil
	if schema.Items != nil && schema.Items.Schema != nil {
		stripRules(schema.Items.Schema, defaults)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		stripRules(schema.AdditionalProperties.Schema, defaults)
	}
	for name, property := range schema.Properties {
		stripRules(&property, defaults)
		schema.Properties[name] = property
	}
}

// withoutTypes removes the types of the parts that Kubernetes defines, such as templates of pods: the properties that can
// be null, of parts that preserve unknown fields. With them, the API server starts seconds later.
func withoutTypes(schema *apiextensionsv1.JSONSchemaProps) {
	if schema.Items != nil && schema.Items.Schema != nil {
		withoutTypes(schema.Items.Schema)
	}
	open := schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
	for name, property := range schema.Properties {
		if open && property.Nullable {
			delete(schema.Properties, name)
			continue
		}
		withoutTypes(&property)
		schema.Properties[name] = property
	}
}

func deepCopies(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	copies := make([]*apiextensionsv1.CustomResourceDefinition, len(crds))
	for i, crd := range crds {
		copies[i] = crd.DeepCopy()
	}
	return copies
}
