// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/seamark-dev/seamark/test/integration/env"
)

// exceptions maps the deviations from the conventions, as "Type.field: problem", to the reason.
// Exceptions that no longer apply must be removed.
func exceptions() map[string]string {
	return map[string]string{
		"NodePodProbeStatus.probeReports: bool: use an enumeration instead":   "only agents write the field, and only Seamark reads it",
		"PodReport.uid: the Go name is not Uid":                               "the Go name is that of PodProbe and the better style",
		"ContainerProbe.publishBody: bool: use an enumeration instead":        "only the manager writes the field, and only the agent reads it",
		"PodProbe.IP: the name is not in camelCase":                           "the name is upstream's",
		"PodProbe.IP: optional without omitempty":                             "upstream always writes the field",
		"PodProbe.uid: the Go name is not Uid":                                "the Go name is upstream's and the better style",
		"PodProbeStatus.uid: the Go name is not Uid":                          "the Go name is upstream's and the better style",
		"PodProbeMarker.spec: required with omitempty":                        "the tag is upstream's; a struct is never omitted",
		"PodProbeMarkerStatus.observedGeneration: optional without omitempty": "upstream always writes the field",

		"CloneSet.spec: required with omitempty":                                    "the tag is upstream's; a struct is never omitted",
		"CloneSetScaleStrategy.disablePVCReuse: bool: use an enumeration instead":   "the field is upstream's",
		"CloneSetUpdateStrategy.paused: bool: use an enumeration instead":           "the field is upstream's",
		"CloneSetStatus.replicas: optional without omitempty":                       "upstream always writes the field",
		"CloneSetStatus.readyReplicas: optional without omitempty":                  "upstream always writes the field",
		"CloneSetStatus.availableReplicas: optional without omitempty":              "upstream always writes the field",
		"CloneSetStatus.updatedReplicas: optional without omitempty":                "upstream always writes the field",
		"CloneSetStatus.updatedReadyReplicas: optional without omitempty":           "upstream always writes the field",
		"CloneSetSpec.volumeClaimTemplates: list without +listType":                 "the type is in config/crd/embedded",
		"StatefulSetSpec.volumeClaimTemplates: list without +listType":              "the type is in config/crd/embedded",
		"StatefulSet.spec: required with omitempty":                                 "the tag is upstream's; a struct is never omitted",
		"RollingUpdateStatefulSetStrategy.paused: bool: use an enumeration instead": "the field is upstream's",
		"StatefulSetOrdinals.start: optional without omitempty":                     "the tag is that of Kubernetes",
		"StatefulSetStatus.replicas: optional without omitempty":                    "upstream always writes the field",
		"StatefulSetStatus.readyReplicas: optional without omitempty":               "upstream always writes the field",
		"StatefulSetStatus.availableReplicas: optional without omitempty":           "upstream always writes the field",
		"StatefulSetStatus.currentReplicas: optional without omitempty":             "upstream always writes the field",
		"StatefulSetStatus.updatedReplicas: optional without omitempty":             "upstream always writes the field",
		"LifecycleHook.markPodNotReady: bool: use an enumeration instead":           "the field is upstream's",
	}
}

// TestGoTypesFollowTheConventions checks the types in api/ against the Kubernetes API
// conventions for fields.
func TestGoTypesFollowTheConventions(t *testing.T) {
	t.Parallel()
	root, err := env.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	var fields []goField
	for folder, least := range map[string]int{"apps/v1alpha1": 60, "apps/v1beta1": 40, "apps/pub": 6, "seamark/v1alpha1": 8} {
		found, err := readFields(filepath.Join(root, "api", folder))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < least {
			t.Fatalf("found %d fields in %s, want at least %d", len(found), folder, least)
		}
		fields = append(fields, found...)
	}
	allowed := exceptions()
	for _, field := range fields {
		for _, problem := range field.problems() {
			if _, ok := allowed[problem]; ok {
				delete(allowed, problem)
			} else {
				t.Error(problem)
			}
		}
	}
	for problem := range allowed {
		t.Errorf("unused exception: %s", problem)
	}
}

// goField is a field of a struct in the API, except embedded fields.
type goField struct {
	owner, goName, jsonName string
	options                 []string
	doc                     string
	kind                    ast.Expr
}

// readFields returns the fields of the structs in the Go files of the folder.
func readFields(dir string) ([]goField, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*_types.go"))
	if err != nil {
		return nil, err
	}
	var fields []goField
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				fields = append(fields, fieldsOf(spec.Name.Name, structure)...)
			}
			return false
		})
	}
	return fields, nil
}

func fieldsOf(owner string, structure *ast.StructType) []goField {
	var fields []goField
	for _, field := range structure.Fields.List {
		tag := ""
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if len(field.Names) == 0 && name == "" || strings.HasSuffix(owner, "List") {
			continue
		}
		goName := "ObjectMeta"
		if len(field.Names) > 0 {
			goName = field.Names[0].Name
		}
		fields = append(fields, goField{
			owner: owner, goName: goName, jsonName: name, options: strings.Split(options, ","),
			doc: field.Doc.Text() + markersOf(field.Doc), kind: field.Type,
		})
	}
	return fields
}

// markersOf returns the lines of a comment, including those that begin with +, which go/ast
// omits from the text.
func markersOf(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var lines []string
	for _, comment := range doc.List {
		lines = append(lines, strings.TrimPrefix(comment.Text, "// "))
	}
	return strings.Join(lines, "\n")
}

var camelCase = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

func (f goField) problems() []string {
	required, optional := f.has("+required"), f.has("+optional")
	omitted := slices.Contains(f.options, "omitempty") || slices.Contains(f.options, "omitzero")
	_, isList := f.kind.(*ast.ArrayType)
	name, isName := f.kind.(*ast.Ident)
	var problems []string
	for what, wrong := range map[string]bool{
		"the documentation does not begin with the name": !beginsWith(f.doc, f.jsonName),
		"neither +required nor +optional, or both":       required == optional,
		"the name is not in camelCase":                   !camelCase.MatchString(f.jsonName),
		"the Go name is not " + goNameOf(f.jsonName):     f.goName != goNameOf(f.jsonName) && f.jsonName != "metadata",
		"optional without omitempty":                     optional && !omitted,
		"required with omitempty":                        required && omitted,
		"list without +listType":                         isList && !f.has("+listType="),
		"map list without +listMapKey":                   f.has("+listType=map") && !f.has("+listMapKey="),
		"not int32 or int64":                             isName && strings.Contains(name.Name, "int") && name.Name != "int32" && name.Name != "int64",
		"float":                                          isName && strings.HasPrefix(name.Name, "float"),
		"bool: use an enumeration instead":               isName && name.Name == "bool",
	} {
		if wrong {
			problems = append(problems, fmt.Sprintf("%s.%s: %s", f.owner, f.jsonName, what))
		}
	}
	return problems
}

// has reports whether a line of the field's comment is the marker or, if the marker ends in "=",
// begins with it.
func (f goField) has(marker string) bool {
	for line := range strings.Lines(f.doc) {
		line = strings.TrimSpace(line)
		if line == marker || strings.HasSuffix(marker, "=") && strings.HasPrefix(line, marker) {
			return true
		}
	}
	return false
}

func beginsWith(doc, name string) bool {
	first, _, _ := strings.Cut(doc, " ")
	return first == name
}

func goNameOf(jsonName string) string {
	return strings.ToUpper(jsonName[:1]) + jsonName[1:]
}

// TestCRDsFollowTheConventions checks that every property has a description and every list a
// type, that a status is a subresource, and the short names.
func TestCRDsFollowTheConventions(t *testing.T) {
	t.Parallel()
	crds, err := env.ReadCRDs("")
	if err != nil {
		t.Fatal(err)
	}
	shortNames := map[string][]string{
		"podprobemarkers": {"ppm"}, "nodepodprobes": {"npp"}, "probereports": {"prr"},
		"clonesets": {"clone"}, "statefulsets": {"sts", "asts"},
	}
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Plural, func(t *testing.T) {
			t.Parallel()
			if want := shortNames[crd.Spec.Names.Plural]; !slices.Equal(crd.Spec.Names.ShortNames, want) {
				t.Errorf("short names %v, want %v", crd.Spec.Names.ShortNames, want)
			}
			version := crd.Spec.Versions[0]
			if len(version.AdditionalPrinterColumns) == 0 {
				t.Error("no printer columns")
			}
			properties := version.Schema.OpenAPIV3Schema.Properties
			_, status := properties["status"]
			if subresource := version.Subresources != nil && version.Subresources.Status != nil; subresource != status {
				t.Errorf("has a status: %t, has a status subresource: %t", status, subresource)
			}
			for part, property := range properties {
				if part == "apiVersion" || part == "kind" || part == "metadata" {
					continue
				}
				for _, problem := range schemaProblems(part, property, false) {
					t.Error(problem)
				}
			}
		})
	}
}

// schemaProblems returns the problems of a property and those below it. The fields of a Probe
// have the descriptions of Kubernetes.
func schemaProblems(path string, schema apiextensionsv1.JSONSchemaProps, embedded bool) []string {
	var problems []string
	name := path[strings.LastIndex(path, ".")+1:]
	if !embedded && !beginsWith(schema.Description, name) && !strings.HasSuffix(name, "]") {
		problems = append(problems, path+": the description does not begin with the name")
	}
	embedded = embedded || name == "probe"
	if schema.Items != nil {
		if !embedded && schema.XListType == nil {
			problems = append(problems, path+": list without a type")
		}
		problems = append(problems, schemaProblems(path+"[]", *schema.Items.Schema, embedded)...)
	}
	for property, below := range schema.Properties {
		problems = append(problems, schemaProblems(path+"."+property, below, embedded)...)
	}
	return problems
}
