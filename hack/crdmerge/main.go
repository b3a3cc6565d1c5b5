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
// The other version that the table of kinds names is served in addition, with the schema and everything
// else of the only generated version, which stays the stored one: no conversion is necessary.
//
// A part may extend the generated schema and replace descriptions. It must not contradict the
// schema and must not contain properties that do not exist, so that it does not become outdated
// when the types change. The exception are schemas that preserve unknown fields, such as pod
// templates: a part may define some of their properties. Afterwards, crdmerge adds the types of all other
// properties of these schemas, from the Go types of Kubernetes. See typer. Conditions require only a type and a status. See
// relaxConditions.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/internal/program/kinds"
)

// Extensions of OpenAPI that change how a schema is merged.
const (
	preserve = "x-kubernetes-preserve-unknown-fields"
	rules    = "x-kubernetes-validations"
)

func main() {
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdmerge PARTS-DIR CRD-DIR")
		os.Exit(2)
	}
	serve := map[string]string{}
	for _, kind := range kinds.Table() {
		for _, version := range kind.OtherVersions {
			serve[kind.Group+"_"+kind.Resource] = version
		}
	}
	if err := run(flag.Arg(0), flag.Arg(1), serve); err != nil {
		fmt.Fprintln(os.Stderr, "crdmerge:", err)
		os.Exit(1)
	}
}

func run(parts, crds string, serve map[string]string) error {
	paths, err := filepath.Glob(filepath.Join(parts, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list parts in %s: %w", parts, err)
	}
	if len(paths) == 0 {
		return fmt.Errorf("no *.yaml in %s", parts)
	}
	for _, path := range paths {
		part, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(filepath.Base(path), ".yaml"), "+") {
			target := filepath.Join(crds, name+".yaml")
			if err := rewrite(target, func(crd []byte) ([]byte, error) { return mergeCRD(crd, part) }); err != nil {
				return fmt.Errorf("merge %s into %s: %w", path, target, err)
			}
		}
	}
	for name := range serve {
		if _, err := os.Stat(filepath.Join(crds, name+".yaml")); err != nil {
			return fmt.Errorf("serve %s: %w", name, err)
		}
	}
	paths, err = filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list CRDs in %s: %w", crds, err)
	}
	for _, target := range paths {
		version := serve[strings.TrimSuffix(filepath.Base(target), ".yaml")]
		if err := rewrite(target, func(crd []byte) ([]byte, error) { return finish(crd, version) }); err != nil {
			return fmt.Errorf("complete %s: %w", target, err)
		}
	}
	return nil
}

// rewrite replaces the content of the CRD with what change returns for it.
func rewrite(path string, change func(crd []byte) ([]byte, error)) error {
	crd, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := change(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(path, changed, 0o644) //nolint:gosec // The file is public.
}

// mergeCRD merges the part into the schema of each version of the CRD, and returns the YAML in
// the format of controller-gen.
func mergeCRD(crd, part []byte) ([]byte, error) {
	object, spec, err := parse(crd)
	if err != nil {
		return nil, err
	}
	var addition map[string]any
	if err := yaml.UnmarshalStrict(part, &addition); err != nil {
		return nil, fmt.Errorf("parse part: %w", err)
	}
	versions, _ := spec["versions"].([]any)
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
	return write(object, nil)
}

// finish relaxes conditions, adds types to the open parts of the schema, and a version if one is named.
func finish(crd []byte, version string) ([]byte, error) {
	object, spec, err := parse(crd)
	if err != nil {
		return nil, err
	}
	kind, _, _ := unstructured.NestedString(spec, "names", "kind")
	t, err := typeOf(kind)
	if err != nil {
		return nil, err
	}
	versions, _ := spec["versions"].([]any)
	only, ok := versions[0].(map[string]any)
	if !ok || len(versions) != 1 || only["name"] == version {
		return nil, fmt.Errorf("the CRD must have one version, which is not %s", version)
	}
	holder, _ := only["schema"].(map[string]any)
	schema, _ := holder["openAPIV3Schema"].(map[string]any)
	relaxConditions(schema)
	types := typer{shared: map[reflect.Type]map[string]any{}}
	if err := types.complete(schema, t, false); err != nil {
		return nil, err
	}
	names, err := types.names()
	if err != nil {
		return nil, err
	}
	names[identity(holder)] = "schema"
	if version != "" {
		addVersion(spec, only, version)
	}
	return write(object, names)
}

// addVersion adds a version that differs from the only one of the CRD in its name, and in that it is not
// stored. The versions are sorted, as controller-gen does.
func addVersion(spec, only map[string]any, name string) {
	added := maps.Clone(only)
	added["name"], added["storage"] = name, false
	versions := []any{only, added}
	slices.SortFunc(versions, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
	})
	spec["versions"] = versions
	spec["conversion"] = map[string]any{"strategy": "None"}
}

// parse returns a CRD, and its spec, which has at least one version.
func parse(crd []byte) (object, spec map[string]any, err error) {
	if err := yaml.UnmarshalStrict(crd, &object); err != nil {
		return nil, nil, fmt.Errorf("parse CRD: %w", err)
	}
	spec, _ = object["spec"].(map[string]any)
	if versions, _ := spec["versions"].([]any); len(versions) == 0 {
		return nil, nil, errors.New("the CRD has no spec.versions")
	}
	return object, spec, nil
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
			if err := mergeProperties(properties, inner, at, schema[preserve] == true); err != nil {
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

// mergeProperties merges the schemas of properties. Each must exist, unless the schema is open: unknown
// fields are preserved.
func mergeProperties(properties, part map[string]any, path string, open bool) error {
	for _, name := range slices.Sorted(maps.Keys(part)) {
		below, ok := properties[name].(map[string]any)
		addition, isObject := part[name].(map[string]any)
		if !ok && isObject && open {
			properties[name] = addition
			continue
		}
		if !ok || !isObject {
			return fmt.Errorf("%s.%s: no such property", path, name)
		}
		if err := merge(below, addition, path+"."+name); err != nil {
			return err
		}
	}
	return nil
}
