// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crdmerge merges hand-written parts of schemas into generated CRDs.
//
// controller-gen generates schemas from Go types and their markers. The types that the API
// embeds from Kubernetes have no markers, and values of Go maps can't have any. Their part of
// the OpenAPI schema is in a file with the same name as the CRD, and is merged into it. The name of
// a file that several CRDs share is the names of the CRDs, joined by "+":
//
//	crdmerge PARTS-DIR CRD-DIR
//
// A part may extend the generated schema and replace descriptions. It must not contradict the
// schema and must not contain properties that do not exist, so that it does not become outdated
// when the types change. The exception are schemas that preserve unknown fields, such as pod
// templates: a part may define some of their properties.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// Extensions of OpenAPI that change how a schema is merged.
const (
	preserve = "x-kubernetes-preserve-unknown-fields"
	rules    = "x-kubernetes-validations"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: crdmerge PARTS-DIR CRD-DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "crdmerge:", err)
		os.Exit(1)
	}
}

func run(parts, crds string) error {
	paths, err := filepath.Glob(filepath.Join(parts, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list parts in %s: %w", parts, err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("no *.yaml in %s", parts)
	}
	for _, path := range paths {
		for name := range strings.SplitSeq(strings.TrimSuffix(filepath.Base(path), ".yaml"), "+") {
			target := filepath.Join(crds, name+".yaml")
			if err := mergeFile(path, target); err != nil {
				return fmt.Errorf("merge %s into %s: %w", path, target, err)
			}
		}
	}
	return nil
}

func mergeFile(partPath, crdPath string) error {
	part, err := os.ReadFile(partPath)
	if err != nil {
		return err
	}
	crd, err := os.ReadFile(crdPath)
	if err != nil {
		return err
	}
	merged, err := mergeCRD(crd, part)
	if err != nil {
		return err
	}
	return os.WriteFile(crdPath, merged, 0o644) //nolint:gosec // The file is public.
}

// mergeCRD merges the part into the schema of each version of the CRD, and returns the YAML in
// the format of controller-gen.
func mergeCRD(crd, part []byte) ([]byte, error) {
	var object, addition map[string]any
	if err := yaml.UnmarshalStrict(crd, &object); err != nil {
		return nil, fmt.Errorf("parse CRD: %w", err)
	}
	if err := yaml.UnmarshalStrict(part, &addition); err != nil {
		return nil, fmt.Errorf("parse part: %w", err)
	}
	spec, _ := object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return nil, errors.New("the CRD has no spec.versions")
	}
	for i := range versions {
		version, _ := versions[i].(map[string]any)
		holder, _ := version["schema"].(map[string]any)
		schema, ok := holder["openAPIV3Schema"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.versions[%d] has no schema", i)
		}
		if err := merge(schema, addition, ""); err != nil {
			return nil, err
		}
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write CRD: %w", err)
	}
	return bytes.Join([][]byte{[]byte("---\n"), text}, nil), nil
}

// merge adds the part to the schema at path. Both are JSON objects.
func merge(schema, part map[string]any, path string) error {
	for _, key := range slices.Sorted(maps.Keys(part)) {
		want, at := part[key], path+"."+key
		got, exists := schema[key]
		inner, isObject := want.(map[string]any)
		switch {
		case !exists && (schema[preserve] == true || isEmptyObject(schema) && key == "properties"):
			schema[key] = want
		case exists && key == rules:
			schema[key] = mergeRules(got, want)
		case isObject && key == "properties":
			properties, _ := got.(map[string]any)
			if err := mergeProperties(properties, inner, at); err != nil {
				return err
			}
		case isObject:
			below, ok := got.(map[string]any)
			if !ok {
				return fmt.Errorf("%s: the schema has no such part", at)
			}
			if err := merge(below, inner, at); err != nil {
				return err
			}
		case exists && key != "description" && !equality.Semantic.DeepEqual(got, want):
			return fmt.Errorf("%s: the schema has %v already, which %v contradicts", at, got, want)
		default:
			schema[key] = want
		}
	}
	return nil
}

// isEmptyObject reports whether the schema allows any object, as that of metadata does.
func isEmptyObject(schema map[string]any) bool { return len(schema) == 1 && schema["type"] == "object" }

// mergeRules adds rules that the schema does not contain.
func mergeRules(got, want any) []any {
	all, _ := got.([]any)
	more, _ := want.([]any)
	for _, rule := range more {
		if !slices.ContainsFunc(all, func(other any) bool { return equality.Semantic.DeepEqual(rule, other) }) {
			all = append(all, rule)
		}
	}
	return all
}

// mergeProperties merges the schemas of properties, each of which must exist.
func mergeProperties(properties, part map[string]any, path string) error {
	for _, name := range slices.Sorted(maps.Keys(part)) {
		below, ok := properties[name].(map[string]any)
		addition, isObject := part[name].(map[string]any)
		if !ok || !isObject {
			return fmt.Errorf("%s.%s: no such property", path, name)
		}
		if err := merge(below, addition, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}
