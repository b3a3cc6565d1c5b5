// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/config"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/test/expect"
)

// The rows are those of the CustomResourceDefinitions.
func TestTable(t *testing.T) {
	for _, kind := range kinds.Table() {
		t.Run(kind.Kind, func(t *testing.T) {
			var definition apiextensionsv1.CustomResourceDefinition
			expect.NoError(t, yaml.Unmarshal(config.Definition(kind.Definition()), &definition))
			spec := definition.Spec
			var stored string
			var also []string
			replicas := false
			for _, version := range spec.Versions {
				if version.Storage {
					stored = version.Name
					_, replicas = version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["replicas"]
				} else if version.Served {
					also = append(also, version.Name)
				}
			}
			want := kinds.Kind{
				Resource: spec.Names.Plural, ClusterScoped: spec.Scope == apiextensionsv1.ClusterScoped, OtherVersions: also, HasReplicas: replicas,
			}
			want.Group, want.Version, want.Kind = spec.Group, stored, spec.Names.Kind
			row := kinds.Kind{
				GroupVersionKind: kind.GroupVersionKind, Resource: kind.Resource, ClusterScoped: kind.ClusterScoped, OtherVersions: kind.OtherVersions,
			}
			row.HasReplicas = kind.HasReplicas
			expect.Equal(t, "row (-definition +row)", want, row, cmpopts.EquateEmpty())
			if plural := strings.ToLower(kind.Kind) + "s"; kind.Resource != plural {
				t.Errorf("resource %s, but the chart and the commands know it as %s: add path=%s to the marker kubebuilder:resource", kind.Resource, plural, plural)
			}
			if config.Read(kind.ConfigFolder+"/rbac.yaml") == nil {
				t.Errorf("config/%s has no rbac.yaml with roles", kind.ConfigFolder)
			}
			if content, name := manifests(t, kind.ConfigFolder), kind.Policy.Name; name != "" && !strings.Contains(content, "name: "+name+"\n") {
				t.Errorf("config/%s has no policy %s", kind.ConfigFolder, name)
			}
			if got := reflect.TypeOf(kind.New()).Elem(); got.Name() != kind.Kind || !strings.HasSuffix(got.PkgPath(), "/"+kind.Version) {
				t.Errorf("new returns %v", got)
			}
			if got := reflect.TypeOf(kind.NewList()).Elem(); got.Name() != kind.Kind+"List" || !strings.HasSuffix(got.PkgPath(), "/"+kind.Version) {
				t.Errorf("new list returns %v", got)
			}
			for _, name := range append([]string{kind.Kind, kind.Resource, kind.Definition()}, spec.Names.ShortNames...) {
				if found := kinds.ByName(name); found == nil || found.Kind != kind.Kind {
					t.Errorf("the kind named %s is %v", name, found)
				}
			}
		})
	}
	if found := kinds.ByName("deployments"); found != nil {
		t.Errorf("the kind named deployments is %s", found.Kind)
	}
}

// Each controller of the configuration has a row.
func TestControllers(t *testing.T) {
	var configured, given []string
	controllers := configv1alpha1.WorkloadControllers{}
	value := reflect.ValueOf(&controllers).Elem()
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		configured = append(configured, name)
		for _, kind := range kinds.Table() {
			if kind.ConfigName == name && value.Field(i).Addr().Interface() == kind.Controller(&controllers) {
				given = append(given, name)
			}
		}
	}
	slices.Sort(configured)
	slices.Sort(given)
	expect.Equal(t, "controllers (-configuration +rows)", configured, given)
}

// The manager may grant rights for the kinds whose pods seamark-workloads writes.
func TestGrantResources(t *testing.T) {
	var writers []string
	for _, kind := range kinds.Table() {
		if kind.CreatesPods() || kind.Role == kinds.Injector {
			writers = append(writers, kind.Resource)
		}
	}
	allowed := configv1alpha1.GrantResources()
	slices.Sort(writers)
	slices.Sort(allowed)
	expect.Equal(t, "GrantResources in api/config/v1alpha1/manager_types.go (-resources +rows)", allowed, writers)
}

// manifests returns the manifests of a folder below config/.
func manifests(t *testing.T, folder string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "config", folder, "*.yaml"))
	expect.NoError(t, err)
	var all strings.Builder
	for _, path := range paths {
		content, err := os.ReadFile(path)
		expect.NoError(t, err)
		all.Write(content)
	}
	return all.String()
}
