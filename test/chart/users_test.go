// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestRolesOfUsers checks which roles of Kubernetes include those of the chart for users, and that the
// chart binds nobody to them.
func TestRolesOfUsers(t *testing.T) {
	const prefix = "rbac.authorization.k8s.io/aggregate-to-"
	want := map[string][]string{
		"ClusterRole seamark-view":        {"admin", "edit", "view"},
		"ClusterRole seamark-edit":        {"admin", "edit"},
		"ClusterRole seamark-view-states": nil,
		"Role ns/seamark-view-states":     nil,
	}
	got := map[string][]string{}
	for k, object := range parse(t, template(t, tool(t, "helm"), "ns")) {
		switch k.Kind {
		case "Role", "ClusterRole":
			name := strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
			if strings.HasPrefix(k.Name, "seamark-view") || k.Name == "seamark-edit" {
				labels, _ := at(object, []string{"metadata", "labels"}).(map[string]any)
				var in []string
				for label := range maps.Keys(labels) {
					if role, is := strings.CutPrefix(label, prefix); is {
						in = append(in, role)
					}
				}
				slices.Sort(in)
				got[k.Kind+" "+name] = in
			}
		case "RoleBinding", "ClusterRoleBinding":
			if role := at(object, []string{"roleRef", "name"}); role == "seamark-view-states" {
				t.Errorf("%s %s binds users to %v", k.Kind, k.Name, role)
			}
		}
	}
	expect.Equal(t, want, got, "roles that include the roles for users")
}
