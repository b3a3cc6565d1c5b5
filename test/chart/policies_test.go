// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestMarkerAuthorEnforcement checks that the value changes the binding of this policy and no
// other.
func TestMarkerAuthorEnforcement(t *testing.T) {
	helm := tool(t, "helm")
	policy := key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-marker-author"}
	binding := key{Kind: "ValidatingAdmissionPolicyBinding", Name: "seamark-marker-author"}
	for enforcement, want := range map[string]any{
		"Warn": []any{"Warn", "Audit"},
		"Deny": []any{"Deny", "Audit"},
		"Off":  nil,
	} {
		t.Run(enforcement, func(t *testing.T) {
			objects := parse(t, template(t, helm, "ns", "--set", workloads+",policies.markerAuthor.enforcement="+enforcement))
			got := at(objects[binding], []string{"spec", "validationActions"})
			expect.Equal(t, "the binding's actions", want, got)
			if _, there := objects[policy]; there != (want != nil) {
				t.Errorf("the policy exists: %t", there)
			}
			for _, name := range []string{"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", "seamark-workloads-pods"} {
				k := key{Kind: binding.Kind, Name: name}
				expect.Equal[any](t, name, []any{"Deny", "Audit"}, at(objects[k], []string{"spec", "validationActions"}))
			}
		})
	}
}

// TestAuthorPolicies checks that all policies for authors deny by default, and that the trusted users and the
// excluded namespaces reach every policy that has them.
func TestAuthorPolicies(t *testing.T) {
	const trusted = "system:serviceaccount:games:controller"
	objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", workloads+",sidecarSets.enabled=true,workloads.controllers={imagepulljob},"+
		"policies.markerAuthor.trusted={"+trusted+",ann},manager.excludedNamespaces={kube-system,ops},workloads.excludedNamespaces={kube-system,db}"))
	for _, name := range []string{"seamark-marker-author", "seamark-sidecarset-author", "seamark-imagepulljob-author"} {
		binding := objects[key{Kind: "ValidatingAdmissionPolicyBinding", Name: name}]
		expect.Equal[any](t, fmt.Sprintf("actions of %s", name), []any{"Deny", "Audit"}, at(binding, []string{"spec", "validationActions"}))
		policy := objects[key{Kind: "ValidatingAdmissionPolicy", Name: name}]
		want := `!(request.userInfo.username in ["` + trusted + `","ann"])`
		if got := at(policy, []string{"spec", "matchConditions", "0", "expression"}); got != want {
			t.Errorf("match condition of %s: %v, want %s", name, got, want)
		}
	}
	plans := objects[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-plans"}]
	if got, want := at(plans, []string{"spec", "variables", "0", "expression"}), `["kube-system","ops"]`; got != want {
		t.Errorf("excluded namespaces of the policy: %v, want %s", got, want)
	}
	marks := objects[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-pods"}]
	if diff := cmp.Diff([]any{"kube-system", "ops"}, at(marks, steps("spec.matchConstraints.namespaceSelector.matchExpressions.0.values"))); diff != "" {
		t.Errorf("namespaces of the policy of marks (-want +got):\n%s", diff)
	}
	all := parse(t, template(t, tool(t, "helm"), "ns", "--set", "manager.excludedNamespaces=null"))
	none := all[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-manager-pods"}]
	if diff := cmp.Diff([]any{""}, at(none, steps("spec.matchConstraints.namespaceSelector.matchExpressions.0.values"))); diff != "" {
		t.Errorf("namespaces of the policy of marks if none is excluded (-want +got):\n%s", diff)
	}
	config, _ := at(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-manager"}], []string{"data", "manager.yaml"}).(string)
	if !strings.Contains(config, "excludedNamespaces:\n- kube-system\n- ops\n") {
		t.Errorf("configuration of the manager without the excluded namespaces:\n%s", config)
	}
	config, _ = at(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-workloads"}], []string{"data", "workloads.yaml"}).(string)
	if !strings.Contains(config, "excludedNamespaces:\n- kube-system\n- db\n") {
		t.Errorf("configuration of seamark-workloads without the excluded namespaces:\n%s", config)
	}
}

// TestGuards checks the values of the policies of guards.
func TestGuards(t *testing.T) {
	objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", "policies.guards.exemptUsers={other-scheduler}"))
	for _, name := range []string{"seamark-guards", "seamark-guard-updates"} {
		conditions, _ := at(objects[key{Kind: "ValidatingAdmissionPolicy", Name: name}], steps("spec.matchConditions")).([]any)
		want := map[string]any{"name": "not-exempt-user", "expression": `!(request.userInfo.username in ["other-scheduler"])`}
		if !slices.ContainsFunc(conditions, func(condition any) bool { return cmp.Equal(condition, any(want)) }) {
			t.Errorf("conditions of %s: %v, want one of them %v", name, conditions, want)
		}
	}
	for k := range parse(t, template(t, tool(t, "helm"), "ns", "--set", "policies.guards.enabled=false")) {
		if strings.HasPrefix(k.Name, "seamark-guard") {
			t.Errorf("%s %s exists without guards", k.Kind, k.Name)
		}
	}
}

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
	expect.Equal(t, "roles that include the roles for users", want, got)
}

// TestDocumentedValues renders the chart with each set of values that docs/install.md
// recommends.
func TestDocumentedValues(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	expect.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.+?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatalf("found %d sets of values, want those for a small and for a large cluster", len(blocks))
	}
	for _, block := range blocks {
		parse(t, template(t, tool(t, "helm"), "ns", "--values", valuesFile(t, string(block[1]))))
	}
}

// TestReadmeValues checks that the README of the chart states the defaults of values.yaml.
func TestReadmeValues(t *testing.T) {
	readme, err := os.ReadFile("../../charts/seamark/README.md")
	expect.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]*)` \\|").FindAllSubmatch(readme, -1)
	if len(rows) < 10 {
		t.Fatalf("found %d rows in the table of values, want the main values", len(rows))
	}
	values := readValues(t)
	for _, row := range rows {
		var documented any
		expect.NoError(t, yaml.Unmarshal(row[2], &documented))
		expect.Equal(t, fmt.Sprintf("default of %s", row[1]), at(values, strings.Split(string(row[1]), ".")), documented)
	}
}

// TestIcon checks that the icon of the chart is the file in the repository.
func TestIcon(t *testing.T) {
	const folder = "https://raw.githubusercontent.com/seamark-dev/seamark/main/"
	content, err := os.ReadFile("../../charts/seamark/Chart.yaml")
	expect.NoError(t, err)
	var chart struct{ Icon string }
	expect.NoError(t, yaml.Unmarshal(content, &chart))
	path, found := strings.CutPrefix(chart.Icon, folder)
	if !found {
		t.Fatalf("icon %q is not below %s", chart.Icon, folder)
	}
	if _, err := os.Stat("../../" + path); err != nil {
		t.Error(err)
	}
}

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

// TestReleaseFitsIntoASecret installs everything without a cluster, and measures what Helm would store: the chart and the
// manifests, compressed, in a Secret of at most 1 MiB. Both contain the CRDs.
func TestReleaseFitsIntoASecret(t *testing.T) {
	const limit = 700 << 10
	release := output(t, tool(t, "helm"), "install", "seamark", "charts/seamark", "--namespace", "ns", "--dry-run=client", "--output", "json",
		"--values", valuesFile(t, everything), "--set",
		"sidecarSets.enabled=true,workloads.controllers={cloneset,statefulset,advancedcronjob,daemonset,broadcastjob,imagepulljob}")
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	expect.NoError(t, err)
	if _, err := writer.Write(release); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, writer.Close())
	size := base64.StdEncoding.EncodedLen(compressed.Len())
	t.Logf("the release has %d KiB", size>>10)
	if size > limit {
		t.Errorf("the release has %d bytes, more than %d", size, limit)
	}
}

// TestCRDsAreSmall measures the CRDs as the API server stores them.
func TestCRDsAreSmall(t *testing.T) {
	const limit = 400 << 10
	paths, err := filepath.Glob(filepath.Join(repository, "config", "crd", "*", "*.*_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d CRDs, error %v", len(paths), err)
	}
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == "embedded" {
			continue
		}
		content, err := os.ReadFile(path)
		expect.NoError(t, err)
		encoded, err := yaml.YAMLToJSON(content)
		expect.NoError(t, err)
		if len(encoded) > limit {
			t.Errorf("%s has %d bytes, more than %d", path, len(encoded), limit)
		}
		t.Logf("%s has %d KiB", filepath.Base(path), len(encoded)>>10)
	}
}
