// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestNoFieldOfOpenKruiseIsPruned compares every field of OpenKruise's types with Seamark's CRDs and types.
// A field is served, or a rule refuses it and the migration page names it. A field that is neither would be
// removed from objects without a message.
func TestNoFieldOfOpenKruiseIsPruned(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "migrate-from-openkruise.md"))
	expect.NoError(t, err)
	definitions := map[string][]byte{
		"CloneSet": config.Definition("clonesets.apps.kruise.io"), "StatefulSet": config.Definition("statefulsets.apps.kruise.io"),
		"DaemonSet": config.Definition("daemonsets.apps.kruise.io"),
	}
	for section, paths := range readFields(t) {
		for _, path := range paths {
			served, refused := false, ""
			if kind, version, isKind := strings.Cut(section, " "); isKind {
				served, refused = find(schemaOf(t, definitions[kind], version), strings.Split(path, "."))
			} else {
				served = hasField(reflect.TypeFor[pub.InPlaceUpdateState](), strings.Split(path, "."))
			}
			switch {
			case !served:
				t.Errorf("%s: %s is pruned: serve it, or refuse it with a rule and name it in docs/migrate-from-openkruise.md", section, path)
			case refused != "" && !strings.Contains(string(page), "`"+strings.TrimPrefix(refused, "spec.")+"`"):
				t.Errorf("%s: %s is refused, but docs/migrate-from-openkruise.md does not name %s", section, path, refused)
			}
		}
	}
}

// readFields returns the paths of the file by section.
func readFields(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "openkruise-1.9-fields.txt"))
	expect.NoError(t, err)
	fields, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, isSection := strings.CutSuffix(line, ":")
		switch {
		case line == "" || line[0] == '#':
		case isSection:
			section = name
		default:
			fields[section] = append(fields[section], line)
		}
	}
	for section, least := range map[string]int{
		"CloneSet v1alpha1": 50, "StatefulSet v1alpha1": 35, "StatefulSet v1beta1": 55, "DaemonSet v1alpha1": 40, "DaemonSet v1beta1": 40, "InPlaceUpdateState": 12,
	} {
		if len(fields[section]) < least {
			t.Fatalf("found %d fields of %s, want at least %d", len(fields[section]), section, least)
		}
	}
	return fields
}

// schemaOf returns the schema of the version of the CRD, nil if it is not served.
func schemaOf(t *testing.T, definition []byte, version string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var read apiextensionsv1.CustomResourceDefinition
	expect.NoError(t, yaml.UnmarshalStrict(definition, &read))
	for i := range read.Spec.Versions {
		if v := &read.Spec.Versions[i]; v.Name == version && v.Served {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// suffixes are those of an element of a path: it is a list or a map.
var suffixes = regexp.MustCompile(`(\[\]|\{\})$`)

// find reports whether the schema has the path, and the part of the path that a rule refuses.
func find(schema *apiextensionsv1.JSONSchemaProps, path []string) (served bool, refused string) {
	for i, element := range path {
		if schema == nil {
			return false, ""
		}
		property, found := schema.Properties[suffixes.ReplaceAllString(element, "")]
		if !found {
			return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields, ""
		}
		schema = &property
		if slices.ContainsFunc(schema.XValidations, func(rule apiextensionsv1.ValidationRule) bool { return rule.Rule == "false" }) {
			refused = strings.Join(path[:i+1], ".")
		}
		switch suffixes.FindString(element) {
		case "[]":
			if schema.Items == nil || schema.Items.Schema == nil {
				return false, ""
			}
			schema = schema.Items.Schema
		case "{}":
			if schema.AdditionalProperties == nil || schema.AdditionalProperties.Schema == nil {
				return false, ""
			}
			schema = schema.AdditionalProperties.Schema
		}
	}
	// The path of a list, a map or an object is not complete, unless Kubernetes defines what is in it, or in the pods of a template.
	if pods, is := schema.Properties["spec"]; is && path[len(path)-1] == "template" {
		schema = &pods
	}
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields ||
		schema.Items == nil && schema.AdditionalProperties == nil && len(schema.Properties) == 0, refused
}

// hasField reports whether the type has fields with the names in JSON.
func hasField(of reflect.Type, path []string) bool {
	for _, element := range path {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return false
		}
		field, found := of.FieldByNameFunc(func(name string) bool {
			field, _ := of.FieldByName(name)
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return tag == suffixes.ReplaceAllString(element, "")
		})
		if !found {
			return false
		}
		of = field.Type
		if kind := map[string]reflect.Kind{"[]": reflect.Slice, "{}": reflect.Map}[suffixes.FindString(element)]; kind != reflect.Invalid {
			if of.Kind() != kind {
				return false
			}
			of = of.Elem()
		}
	}
	return true
}
