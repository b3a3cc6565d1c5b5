// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

func reference(t *testing.T) string { return page(t, "configuration.md") }

func page(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/" + name)
	expect.NoError(t, err)
	return string(content)
}

// TestDocumentedExamplesAreValid loads each example of the documentation.
func TestDocumentedExamplesAreValid(t *testing.T) {
	examples := regexp.MustCompile("(?s)```yaml\n(apiVersion: config.*?)```").FindAllStringSubmatch(reference(t), -1)
	loaded := map[string]bool{}
	for _, example := range examples {
		var err error
		switch content := example[1]; {
		case strings.HasPrefix(content, managerHead):
			_, err = loadManager(t, line{file: content})
			loaded["manager"] = true
		case strings.HasPrefix(content, agentHead):
			_, err = loadAgent(t, line{file: content})
			loaded["agent"] = true
		case strings.HasPrefix(content, workloadsHead):
			_, err = loadWorkloads(t, line{file: content})
			loaded["workloads"] = true
		default:
			t.Errorf("example of unknown kind:\n%s", content)
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, example[1])
		}
	}
	expect.Equal(t, fmt.Sprintf("examples found: %v", loaded), 3, len(loaded))
}

// defaults returns the default configurations by kind.
func defaults() map[string]any {
	manager, agent, workloads := &v1alpha1.ManagerConfiguration{}, &v1alpha1.AgentConfiguration{}, &v1alpha1.WorkloadsConfiguration{}
	v1alpha1.SetManagerDefaults(manager)
	v1alpha1.SetAgentDefaults(agent)
	v1alpha1.SetWorkloadsDefaults(workloads)
	return map[string]any{"ManagerConfiguration": manager, "AgentConfiguration": agent, "WorkloadsConfiguration": workloads}
}

// TestDocumentedFields checks that the documentation lists exactly the fields, with their
// defaults.
func TestDocumentedFields(t *testing.T) {
	for kind, c := range defaults() {
		want := map[string]string{}
		leaves(t, "", reflect.ValueOf(c).Elem(), want)
		_, table, found := strings.Cut(reference(t), "| "+kind+" | default |")
		if !found {
			t.Fatalf("no table of %s", kind)
		}
		table, _, _ = strings.Cut(table, "\n\n")
		got := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`([^`]*)` )?\\|").FindAllStringSubmatch(table, -1) {
			got[row[1]] = row[2]
		}
		expect.Equal(t, fmt.Sprintf("fields of %s in docs/configuration.md and their defaults", kind), want, got)
	}
}

// leaves collects the fields by path, with their values as JSON. Unset fields have none.
func leaves(t *testing.T, path string, value reflect.Value, into map[string]string) {
	t.Helper()
	_, isDuration := value.Interface().(metav1.Duration)
	if value.Kind() != reflect.Struct || isDuration {
		text, err := json.Marshal(value.Interface())
		expect.NoError(t, err)
		if unset := string(text); unset == `""` || unset == "null" {
			text = nil
		}
		into[path] = string(text)
		return
	}
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name != "" {
			leaves(t, strings.TrimPrefix(path+"."+name, "."), value.Field(i), into)
		}
	}
}

// TestDocumentedDefaults checks the defaults in the doc comments of fields, which the reference of
// the API contains: that of the field, or of the first field of its type.
func TestDocumentedDefaults(t *testing.T) {
	documented := 0
	var check func(value reflect.Value)
	check = func(value reflect.Value) {
		of := value.Type()
		_, section, _ := strings.Cut(page(t, "api.md"), "\n### "+of.Name()+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		for i := range value.NumField() {
			field, own := of.Field(i), value.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Type.PkgPath() == of.PkgPath() && own.Kind() == reflect.Struct {
				check(own)
				own = own.Field(0)
			}
			match := regexp.MustCompile("(?m)^\\| `" + name + "` .*Default \"?(.+?)\"?\\. \\|$").FindStringSubmatch(section)
			if match == nil {
				continue
			}
			documented++
			values := map[string]string{}
			leaves(t, "", own, values)
			expect.Equal(t, fmt.Sprintf("%s.%s: documented default", of.Name(), name), strings.Trim(values[""], "\""), match[1])
		}
	}
	for _, c := range defaults() {
		check(reflect.ValueOf(c).Elem())
	}
	if documented < 20 {
		t.Errorf("found %d documented defaults, want all", documented)
	}
}

// TestDocumentedFlags checks that the documentation lists exactly the flags.
func TestDocumentedFlags(t *testing.T) {
	manager, agent, workloads := newSet(), newSet(), newSet()
	NewManager(manager, "")
	NewAgent(agent, "")
	NewWorkloads(workloads, "")
	for program, set := range map[string]*pflag.FlagSet{"manager": manager, "agent": agent, "workloads program": workloads} {
		_, paragraph, _ := strings.Cut(reference(t), "The flags of the "+program+" are ")
		paragraph, _, _ = strings.Cut(paragraph, "\n\n")
		documented := []string{"config"}
		for _, name := range regexp.MustCompile("`-{1,2}([a-z-]+)`").FindAllStringSubmatch(paragraph, -1) {
			documented = append(documented, name[1])
		}
		slices.Sort(documented)
		var defined []string
		set.VisitAll(func(f *pflag.Flag) { defined = append(defined, f.Name) })
		expect.Equal(t, fmt.Sprintf("flags of the %s (-defined +documented)", program), defined, documented)
	}
}
