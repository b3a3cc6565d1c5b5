// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestNullValues sets every optional value to null, as users do to remove a default, with all
// features off and with all features on.
func TestNullValues(t *testing.T) {
	defaults := readValues(t)
	root := readSchema(t)
	helm := tool(t, "helm")
	for name, values := range map[string]string{"off": "", "on": everything} {
		t.Run(name, func(t *testing.T) {
			// Enabled features have settings of their own.
			nulls, err := yaml.Marshal(optional(root, root, defaults, values != ""))
			expect.NoError(t, err)
			rendered := template(t, helm, "ns", "--values", valuesFile(t, string(nulls)), "--values", valuesFile(t, values))
			parse(t, rendered)
			for _, bad := range []string{"<nil>", "<no value>", "%!"} {
				if i := bytes.Index(rendered, []byte(bad)); i >= 0 {
					t.Errorf("with the values\n%sthe chart renders %s", nulls, rendered[max(0, i-200):i+20])
				}
			}
		})
	}
}

// optional returns the values with null for everything that the schema does not require: for
// whole sections or, if within is set, for what is in them.
func optional(root, s *schema, values map[string]any, within bool) map[string]any {
	nulls := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		below, _ := values[name].(map[string]any)
		required := slices.Contains(s.Required, name)
		switch {
		case len(below) > 0 && structured(name) && (required || within):
			nulls[name] = optional(root, s.Properties[name].resolve(root), below, within)
		case !required:
			nulls[name] = nil
		}
	}
	return nulls
}
