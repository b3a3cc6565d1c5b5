// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedDefaults checks that the doc comment of a field states the default of the
// field, or of the first field of its type.
func TestDocumentedDefaults(t *testing.T) {
	manager, agent, workloads := &ManagerConfiguration{}, &AgentConfiguration{}, &WorkloadsConfiguration{}
	SetManagerDefaults(manager)
	SetAgentDefaults(agent)
	SetWorkloadsDefaults(workloads)
	comments := fieldComments(t)
	documented := 0
	var check func(value reflect.Value)
	check = func(value reflect.Value) {
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if field.Anonymous {
				continue
			}
			comment := comments[value.Type().Name()+"."+field.Name]
			if match := regexp.MustCompile(`Default (.+)\.$`).FindStringSubmatch(comment); match != nil {
				documented++
				if got, want := match[1], defaultOf(t, value.Field(i)); got != want {
					t.Errorf("%s.%s: documented default %s, want %s", value.Type().Name(), field.Name, got, want)
				}
			}
			if field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == value.Type().PkgPath() {
				check(value.Field(i))
			}
		}
	}
	check(reflect.ValueOf(manager).Elem())
	check(reflect.ValueOf(agent).Elem())
	check(reflect.ValueOf(workloads).Elem())
	if documented < 20 {
		t.Errorf("found %d documented defaults, want all", documented)
	}
}

// fieldComments returns the doc comments of all struct fields by Type.Field, without markers.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, name := range []string{"agent_types.go", "manager_types.go", "shared_types.go", "workloads_types.go"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					if len(field.Names) == 1 {
						text, _, _ := strings.Cut(field.Doc.Text(), "\n+")
						comments[spec.Name.Name+"."+field.Names[0].Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return false
		})
	}
	return comments
}

// defaultOf returns the value as the documentation writes it.
func defaultOf(t *testing.T, value reflect.Value) string {
	t.Helper()
	if text, ok := value.Interface().(interface{ MarshalJSON() ([]byte, error) }); ok {
		quoted, err := text.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(quoted), `"`)
	}
	if value.Kind() == reflect.Struct {
		return defaultOf(t, value.Field(0))
	}
	text, err := json.Marshal(value.Interface())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
