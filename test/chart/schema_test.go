// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/config"
	"github.com/seamark-dev/seamark/test/expect"
)

// schema is the part of a JSON schema that the tests read.
type schema struct {
	Ref                  string             `json:"$ref"`
	Description          string             `json:"description"`
	Type                 string             `json:"type"`
	Maximum              *int64             `json:"maximum"`
	Required             []string           `json:"required"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	Definitions          map[string]*schema `json:"$defs"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	content, err := os.ReadFile("../../charts/seamark/values.schema.json")
	expect.NoError(t, err)
	root := &schema{}
	expect.NoError(t, json.Unmarshal(content, root))
	return root
}

// resolve follows a reference. A description next to the reference takes precedence.
func (s *schema) resolve(root *schema) *schema {
	if s.Ref == "" {
		return s
	}
	resolved := *root.Definitions[strings.TrimPrefix(s.Ref, "#/$defs/")]
	if s.Description != "" {
		resolved.Description = s.Description
	}
	return &resolved
}

// TestSchemaIsClosed checks that every object of the schema allows known properties only, each
// with a description. Kubernetes objects that are passed through are open.
func TestSchemaIsClosed(t *testing.T) {
	root := readSchema(t)
	var walk func(path string, s *schema)
	walk = func(path string, s *schema) {
		s = s.resolve(root)
		if path != "" && s.Description == "" {
			t.Errorf("%s has no description", path)
		}
		if len(s.Properties) > 0 && string(s.AdditionalProperties) != "false" {
			t.Errorf("%s allows unknown properties", path)
		}
		if s.Items != nil && len(s.Items.Properties) > 0 {
			for _, name := range slices.Sorted(maps.Keys(s.Items.Properties)) {
				walk(path+"[]."+name, s.Items.Properties[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			walk(strings.TrimPrefix(path+"."+name, "."), s.Properties[name])
		}
	}
	walk("", root)
}

// TestSchemaAndValues checks that each value is in the schema and has a comment, and that each
// property of the schema has a value. Free-form maps and component configurations have their
// defaults elsewhere.
func TestSchemaAndValues(t *testing.T) {
	content, err := os.ReadFile("../../charts/seamark/values.yaml")
	expect.NoError(t, err)
	var document yaml.Node
	expect.NoError(t, yaml.Unmarshal(content, &document))
	root := readSchema(t)
	var walk func(path string, s *schema, node *yaml.Node)
	walk = func(path string, s *schema, node *yaml.Node) {
		s = s.resolve(root)
		values := map[string]*yaml.Node{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			name, value := node.Content[i], node.Content[i+1]
			values[name.Value] = value
			child := s.Properties[name.Value]
			here := strings.TrimPrefix(path+"."+name.Value, ".")
			switch {
			case child == nil:
				t.Errorf("line %d: %s is not in the schema", name.Line, here)
			case name.HeadComment != "":
			case value.Kind != yaml.MappingNode || len(value.Content) == 0:
				t.Errorf("line %d: %s has no comment", name.Line, here)
			}
			if child != nil && value.Kind == yaml.MappingNode && structured(here) {
				walk(here, child, value)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if here := strings.TrimPrefix(path+"."+name, "."); values[name] == nil && here != "global" {
				t.Errorf("%s is in the schema but not in values.yaml", here)
			}
		}
	}
	walk("", root, document.Content[0])
}

// structured reports whether the chart defines the fields below a value.
func structured(path string) bool {
	last := path[strings.LastIndex(path, ".")+1:]
	return !slices.Contains([]string{
		"config", "resources", "nodeSelector", "affinity", "featureGates", "seLinuxOptions", "securityContext",
	}, last)
}

// TestSchemaOfConfigurations checks that the chart accepts the fields of the component
// configurations, except those that the chart sets itself.
func TestSchemaOfConfigurations(t *testing.T) {
	root := readSchema(t)
	for component, test := range map[string]struct {
		kind reflect.Type
		own  []string
	}{
		"manager": {
			reflect.TypeFor[configv1alpha1.ManagerConfiguration](),
			[]string{"leaderElection", "metrics", "health", "featureGates", "serverless", "excludedNamespaces", "grants"},
		},
		"agent": {
			reflect.TypeFor[configv1alpha1.AgentConfiguration](),
			[]string{"criEndpoint", "metrics"},
		},
		"workloads": {
			reflect.TypeFor[configv1alpha1.WorkloadsConfiguration](),
			[]string{"leaderElection", "metrics", "health", "injector", "excludedNamespaces"},
		},
	} {
		want := fieldsOf(test.kind)
		for _, name := range test.own {
			if _, found := want[name]; !found {
				t.Errorf("%s: the configuration has no field %s", component, name)
			}
			delete(want, name)
		}
		if component == "workloads" {
			// The value workloads.controllers enables the controllers.
			for _, controller := range want["controllers"].(map[string]any) {
				delete(controller.(map[string]any), "enabled")
			}
			gates := map[string]any{}
			for _, gate := range []string{
				config.PreDownloadDaemonSetGate, config.PreDownloadInPlaceGate, config.RecreateForClaimsGate, config.SidecarSetMetadataGate,
			} {
				gates[gate] = map[string]any{}
			}
			want["featureGates"] = gates
		}
		got := propertiesOf(root, root.Properties[component].Properties["config"])
		expect.Equal(t, fmt.Sprintf("%s: fields", component), want, got)
	}
}

// fieldsOf returns the JSON fields of a struct, each with the fields below it.
func fieldsOf(t reflect.Type) map[string]any {
	fields := map[string]any{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "":
		case field.Type.Kind() == reflect.Struct && field.Type.PkgPath() == t.PkgPath():
			fields[name] = fieldsOf(field.Type)
		default:
			fields[name] = map[string]any{}
		}
	}
	return fields
}

func propertiesOf(root, s *schema) map[string]any {
	properties := map[string]any{}
	for name, property := range s.resolve(root).Properties {
		properties[name] = propertiesOf(root, property)
	}
	return properties
}

// TestRejectedValues checks that error messages name the value and what is allowed.
func TestRejectedValues(t *testing.T) {
	helm := tool(t, "helm")
	for set, want := range map[string]string{
		"managr.replicas=3":                                 "additional properties 'managr' not allowed",
		"manager.replica=3":                                 "at '/manager': additional properties 'replica' not allowed",
		"manager.replicas=many":                             "at '/manager/replicas': got string, want integer",
		"manager.replicas=-1":                               "at '/manager/replicas': minimum",
		"image.pullPolicy=Sometimes":                        "'Always', 'IfNotPresent', 'Never'",
		"image.tag=a b":                                     "at '/image/tag': 'a b' does not match pattern",
		"agent.image.digest=sha256:1":                       "at '/agent/image/digest': 'sha256:1' does not match pattern",
		"agent.port=70000":                                  "at '/agent/port': maximum",
		"agent.maxUnavailable=0%":                           "at '/agent/maxUnavailable'",
		"agent.criEndpoint=unix:///var/run/c.sock":          "at '/agent/criEndpoint'",
		"agent.seLinuxOptions.typ=spc_t":                    "additional properties 'typ' not allowed",
		"agent.runtimeFolder=run":                           "at '/agent/runtimeFolder'",
		"agent.tolerations[0].operater=Exists":              "additional properties 'operater' not allowed",
		"agent.config.execConcurrency=0":                    "at '/agent/config/execConcurrency': minimum",
		"manager.config.messageUpdates=immediate":           "at '/manager/config/messageUpdates': value must be one of 'Limited', 'Immediate'",
		"agent.config.probeRate=10":                         "at '/agent/config/probeRate': minimum",
		"manager.config.probeDefaults.period=1":             "additional properties 'period' not allowed",
		"manager.resources.limits.memory=1 GB":              "at '/manager/resources/limits/memory'",
		"manager.podLabels.app\\.kubernetes\\.io/name=x":    "app.kubernetes.io/name",
		"featureGates.PodProbMarkerGate=true":               "additional properties 'PodProbMarkerGate' not allowed",
		"crds.install=\"yes\"":                              "at '/crds/install': got string, want boolean",
		"uninstall.timeoutSeconds=1":                        "at '/uninstall/timeoutSeconds': minimum",
		"policies=null":                                     "missing property 'policies'",
		"agent.port=null":                                   "at '/agent': missing property 'port'",
		"workloads.controllers={cloneset,uniteddeployment}": "at '/workloads/controllers/1': value must be one of 'cloneset', 'statefulset'",
		"workloads.controllers={cloneset,cloneset}":         "at '/workloads/controllers': items at 0 and 1 are equal",
		"workloads.controllers=null":                        "at '/workloads': missing property 'controllers'",
		"workloads.excludedNamespaces={a b}":                "at '/workloads/excludedNamespaces/0': 'a b' does not match pattern",
		"sidecarSets.enabled=true":                          "sidecarSets.enabled: requires workloads.enabled=true",
		"sidecarSets.certificates=own":                      "at '/sidecarSets/certificates': value must be one of 'seamark', 'certManager'",
		"workloads.enabled=sure":                            "at '/workloads/enabled': got string, want boolean",
		"workloads.replica=3":                               "at '/workloads': additional properties 'replica' not allowed",
		"imagePullSecrets[0]=s":                             "at '/imagePullSecrets/0': got string, want object",
	} {
		t.Run(set, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), helm, "template", "seamark", "charts/seamark", "--set", set)
			command.Dir = repository
			out, err := command.CombinedOutput()
			if err == nil {
				t.Fatal("the values were accepted")
			}
			if !strings.Contains(string(out), want) {
				t.Errorf("message:\n%swant it to contain %q", out, want)
			}
		})
	}
}

// TestParentChart checks that a parent chart can have global values.
func TestParentChart(t *testing.T) {
	template(t, tool(t, "helm"), "ns", "--set", "global.region=eu")
}

// TestConfigurationChangeRollsPods checks that a changed configuration changes the pod
// template, and an unchanged configuration does not.
func TestConfigurationChangeRollsPods(t *testing.T) {
	helm := tool(t, "helm")
	digests := map[string]bool{}
	for _, level := range []string{"1", "2", "2"} {
		objects := parse(t, template(t, helm, "ns", "--set", "manager.config.logging.verbosity="+level))
		manager := objects[key{Kind: "Deployment", Namespace: "ns", Name: "seamark-manager"}]
		path := []string{"spec", "template", "metadata", "annotations", "seamark.dev/config-digest"}
		digests[at(manager, path).(string)] = true
	}
	if len(digests) != 2 {
		t.Errorf("got %d digests of 2 configurations", len(digests))
	}
}
