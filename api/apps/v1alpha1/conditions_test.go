// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/config"
)

func TestNativePodConditionTypesMatchKubernetes(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "k8s.io/api/core/v1").Output()
	if err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(strings.TrimSpace(string(folder)), "types.go")
	file, err := parser.ParseFile(token.NewFileSet(), types, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var want []corev1.PodConditionType
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, named := spec.Type.(*ast.Ident)
		literal, isLiteral := spec.Values[0].(*ast.BasicLit)
		if named && isLiteral && name.Name == "PodConditionType" {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, corev1.PodConditionType(value))
		}
		return true
	})
	slices.Sort(want)
	if diff := cmp.Diff(want, NativePodConditionTypes()); diff != "" {
		t.Errorf("native condition types (-core/v1 +NativePodConditionTypes):\n%s", diff)
	}
}

func TestCELRulesRejectNativePodConditionTypes(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(config.Definition("podprobemarkers.apps.kruise.io"), definition); err != nil {
		t.Fatal(err)
	}
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	probe := schema.Properties["spec"].Properties["probes"].Items.Schema
	quoted := make([]string, 0, len(NativePodConditionTypes()))
	for _, conditionType := range NativePodConditionTypes() {
		quoted = append(quoted, "'"+string(conditionType)+"'")
	}
	want := "!(self in [" + strings.Join(quoted, ", ") + "])"
	for _, field := range []string{"name", "podConditionType"} {
		if !slices.ContainsFunc(probe.Properties[field].XValidations, func(rule apiextensionsv1.ValidationRule) bool {
			return rule.Rule == want
		}) {
			t.Errorf("field %s has no CEL rule %s", field, want)
		}
	}
}
