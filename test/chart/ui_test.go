// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUIMatchesConfig compares the chart with config/ui, except for how the address is set: the
// chart uses a configuration file, config/ uses a flag.
func TestUIMatchesConfig(t *testing.T) {
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/ui"))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", "ui.enabled=true")))
	var kinds []string
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		if diff := cmp.Diff(want[key{Kind: kind, Name: "seamark-ui"}], got[key{Kind: kind, Name: "seamark-ui"}]); diff != "" {
			t.Errorf("%s (-config/ui +chart):\n%s", kind, diff)
		}
		kinds = append(kinds, kind)
	}
	manager := key{Kind: "Deployment", Namespace: "seamark-system", Name: "seamark-manager"}
	ports := strings.Split("spec.template.spec.containers.0.ports", ".")
	if diff := cmp.Diff(at(want[manager], ports), at(got[manager], ports)); diff != "" {
		t.Errorf("ports (-config/ui +chart):\n%s", diff)
	}
	config := at(got[key{Kind: "ConfigMap", Namespace: "seamark-system", Name: "seamark-manager"}], []string{"data", "manager.yaml"})
	if text, _ := config.(string); !strings.Contains(text, "ui:\n  bindAddress: 127.0.0.1:8082") {
		t.Errorf("configuration %q has no address of the page", config)
	}
	without := parse(t, template(t, tool(t, "helm"), "seamark-system"))
	for _, kind := range kinds {
		if _, found := without[key{Kind: kind, Name: "seamark-ui"}]; found {
			t.Errorf("%s exists although the page is disabled", kind)
		}
	}
}
