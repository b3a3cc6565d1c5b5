// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/test/expect"
)

const workloads = "workloads.enabled=true"

// TestWorkloadsMatchConfig compares the chart with config/workloads.
func TestWorkloadsMatchConfig(t *testing.T) {
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/workloads"))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", workloads)))
	delete(want, key{Kind: "Namespace", Name: "seamark-system"})
	expect.Equal(t, "objects", want, got)
}

// TestKindsMatchConfig compares the chart with the folders of config that add a kind. Of the configuration of the program, it
// compares only that the controller is enabled.
func TestKindsMatchConfig(t *testing.T) {
	for _, kind := range kinds.Table() {
		values := ",workloads.controllers={cloneset,statefulset," + strings.ToLower(kind.ConfigName) + "}"
		switch {
		case kind.ConfigFolder == "workloads":
			continue // See TestWorkloadsMatchConfig.
		case kind.Role == kinds.Injector:
			values = ",sidecarSets.enabled=true"
		}
		t.Run(kind.Kind, func(t *testing.T) { kindMatchesConfig(t, kind, values) })
	}
}

func kindMatchesConfig(t *testing.T, row kinds.Kind, values string) {
	t.Helper()
	folder := "config/" + row.ConfigFolder
	want := parse(t, output(t, tool(t, "kustomize"), "build", folder))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", workloads+values)))
	if configuration := configurationOf(got, "seamark-system"); !strings.Contains(configuration, "\n  "+row.ConfigName+":\n    enabled: true\n") {
		t.Errorf("the configuration is\n%swant the controller %s enabled", configuration, row.ConfigName)
	}
	for _, objects := range []map[key]map[string]any{want, got} {
		delete(objects, key{Kind: "Namespace", Name: "seamark-system"})
		for _, kind := range []string{"Deployment", "ConfigMap"} {
			configuration := key{Kind: kind, Namespace: "seamark-system", Name: "seamark-workloads"}
			if objects[configuration] == nil {
				t.Errorf("%s %s does not exist", kind, configuration.Name)
			}
			delete(objects, configuration)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-%s +chart):\n%s", folder, diff)
	}
}

// configurationOf returns the file that configures seamark-workloads, empty if there is none.
func configurationOf(objects map[key]map[string]any, namespace string) string {
	file, _ := at(any(objects[key{Kind: "ConfigMap", Namespace: namespace, Name: "seamark-workloads"}]), []string{"data", "workloads.yaml"}).(string)
	return file
}

// TestSidecarSetValues checks the effect of the values of SidecarSets.
func TestSidecarSetValues(t *testing.T) {
	const enabled = workloads + ",sidecarSets.enabled=true"
	objects := parse(
		t, template(
			t, tool(t, "helm"), "ns", "--set", enabled+",sidecarSets.certificates=certManager,injector.hostNetwork=true,injector.config.logging.verbosity=2",
		),
	)
	if objects[key{Kind: "Secret", Namespace: "ns", Name: "seamark-injector"}] != nil || objects[key{
		Kind: "Certificate", Namespace: "ns", Name: "seamark-injector",
	}] == nil {
		t.Error("cert-manager must issue the certificate, and the injectors must have no Secret of their own")
	}
	for path, want := range map[string]string{
		"Issuer seamark-injector spec.ca.secretName": "seamark-injector-authority", "Certificate seamark-injector-authority spec.secretName": "seamark-injector-authority",
		"Certificate seamark-injector spec.dnsNames.0": "seamark-injector.ns.svc",
	} {
		parts := strings.Fields(path)
		if got := at(any(objects[key{Kind: parts[0], Namespace: "ns", Name: parts[1]}]), strings.Split(parts[2], ".")); got != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	pod := []string{"spec", "template", "spec"}
	program := any(objects[key{Kind: "Deployment", Namespace: "ns", Name: "seamark-injector"}])
	for path, want := range map[string]any{
		"hostNetwork": true, "containers.0.args.0": "injector", "containers.0.args.1": "--config=/etc/seamark/injector.yaml",
		"containers.0.volumeMounts.1.mountPath": "/run/seamark/injector", "volumes.1.secret.secretName": "seamark-injector-certificate",
	} {
		if got := at(program, append(slices.Clone(pod), strings.Split(path, ".")...)); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for name, part := range map[string]string{"seamark-injector": "certificates: certManager", "seamark-workloads": "sidecarSet:\n    enabled: true"} {
		component := strings.TrimPrefix(name, "seamark-")
		file, _ := at(any(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: name}]), []string{"data", component + ".yaml"}).(string)
		if !strings.Contains(file, part) {
			t.Errorf("the configuration of %s is\n%swant it to contain %q", name, file, part)
		}
	}
	policy := parse(t, template(t, tool(t, "helm"), "ns", "--set", workloads))[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-workloads-pods"}]
	variable := at(any(policy), []string{"spec", "variables", "6"})
	if of, _ := variable.(map[string]any); of["name"] != "sidecarSets" || of["expression"] != "false" {
		t.Errorf("variable %v of the policy, want sidecarSets false", variable)
	}
}

// TestWorkloadsAreOffByDefault checks that a release without the program has none of its objects.
func TestWorkloadsAreOffByDefault(t *testing.T) {
	for k := range parse(t, template(t, tool(t, "helm"), "ns")) {
		ofKind := slices.ContainsFunc(kinds.Table(), func(kind kinds.Kind) bool {
			return k.Name == kind.Definition() || k.Name == kind.Policy.Name || strings.HasPrefix(k.Name, "seamark-"+kind.ConfigFolder)
		})
		if ofKind || strings.HasPrefix(k.Name, "seamark-injector") {
			t.Errorf("the chart has %s %s, but the program is off", k.Kind, k.Name)
		}
	}
}

// TestEnabledControllers checks that a release has only the CRDs of the enabled controllers, that
// an uninstallation keeps them, and that the program may access only their kinds.
func TestEnabledControllers(t *testing.T) {
	clones, stateful, cron := "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io", "advancedcronjobs.apps.kruise.io"
	daemon, broadcast := "daemonsets.apps.kruise.io", "broadcastjobs.apps.kruise.io"
	const pull = "imagepulljobs.apps.kruise.io"
	for controllers, test := range map[string]struct {
		crds  []string
		kinds []string
		file  string
	}{
		"cloneset":    {[]string{clones}, []string{"clonesets"}, "controllers:\n  statefulSet:\n    enabled: false\n"},
		"statefulset": {[]string{stateful}, []string{"statefulsets"}, "controllers:\n  cloneSet:\n    enabled: false\n"},
		"advancedcronjob": {
			[]string{cron}, nil, // Roles of its own: see TestKindsMatchConfig.
			"controllers:\n  advancedCronJob:\n    enabled: true\n  cloneSet:\n    enabled: false\n  statefulSet:\n    enabled: false\n",
		},
		"daemonset": {
			[]string{daemon}, nil, // As above.
			"controllers:\n  cloneSet:\n    enabled: false\n  daemonSet:\n    enabled: true\n  statefulSet:\n    enabled: false\n",
		},
		"broadcastjob": {
			[]string{broadcast}, nil, // As above.
			"controllers:\n  broadcastJob:\n    enabled: true\n  cloneSet:\n    enabled: false\n  statefulSet:\n    enabled: false\n",
		},
		"imagepulljob": {
			[]string{pull}, nil,
			"controllers:\n  cloneSet:\n    enabled: false\n  imagePullJob:\n    enabled: true\n  statefulSet:\n    enabled: false\n",
		},
		"statefulset,cloneset": {[]string{clones, stateful}, []string{"clonesets", "statefulsets"}, ""},
	} {
		t.Run(controllers, func(t *testing.T) {
			rendered := template(t, tool(t, "helm"), "ns", "--set", workloads+",workloads.controllers={"+controllers+"}")
			objects := parse(t, rendered)
			var crds []string
			for k := range objects {
				if k.Kind == "CustomResourceDefinition" && slices.Contains([]string{clones, stateful, cron, daemon, broadcast, pull}, k.Name) {
					crds = append(crds, k.Name)
				}
			}
			slices.Sort(crds)
			expect.Equal(t, "CRDs", test.crds, crds)
			expect.Equal(t, "CRDs, a policy and its binding are kept by an uninstallation", 6+len(test.crds), strings.Count(string(rendered), "helm.sh/resource-policy: keep"))
			for _, role := range []string{"seamark-workloads", "seamark-workloads-view", "seamark-workloads-edit"} {
				expect.Equal(t, fmt.Sprintf("workloads in ClusterRole %s", role), test.kinds, kindsOf(t, objects[key{Kind: "ClusterRole", Name: role}]))
			}
			file := configurationOf(objects, "ns")
			if !strings.Contains(file, test.file) || test.file == "" && file != "" {
				t.Errorf("the configuration is\n%swant it to contain %q", file, test.file)
			}
		})
	}
}

// kindsOf returns the resources of workloads in a role, sorted.
func kindsOf(t *testing.T, object map[string]any) []string {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, role))
	var found []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			if strings.HasSuffix(resource, "sets") && !slices.Contains(found, resource) {
				found = append(found, resource)
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestWorkloadsValues checks the effect of the values of seamark-workloads. Its Deployment, budget and
// network policy have the template of those of the manager, whose values TestValues checks.
func TestWorkloadsValues(t *testing.T) {
	const (
		container = "spec.template.spec.containers.0."
		name      = "seamark-workloads"
	)
	namespaced := func(kind, name string) key { return key{Kind: kind, Namespace: "ns", Name: name} }
	program := namespaced("Deployment", name)
	admission := key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-workloads-pods"}
	for name, test := range map[string]struct {
		set    string
		object key
		path   string
		want   any
	}{
		"image":               {"image.registry=r,image.tag=t", program, container + "image", "r/seamark-workloads:t"},
		"replicas by default": {"crds.install=true", program, "spec.replicas", int64(2)},
		"concurrency":         {"workloads.config.controllers.cloneSet.concurrency=4", program, container + "args.0", "--config=/etc/seamark/workloads.yaml"},
		"no CRDs":             {"crds.install=false", key{Kind: "CustomResourceDefinition", Name: "clonesets.apps.kruise.io"}, "metadata.name", nil},
		"metrics":             {"monitoring.serviceMonitor.enabled=true", namespaced("ServiceMonitor", name), "spec.endpoints.0.port", "metrics"},
		"scraped pods": {
			"monitoring.serviceMonitor.enabled=true", namespaced("Service", name+"-metrics"), "spec.selector.app\\.kubernetes\\.io/component", "workloads",
		},
		"excluded namespaces":   {"workloads.excludedNamespaces={a,b}", admission, "spec.variables.0.expression", `["a","b"]`},
		"excludes no namespace": {"workloads.excludedNamespaces=null", admission, "spec.variables.0.expression", "[]"},
		"stopped by uninstall":  {"crds.install=true", namespaced("Role", "seamark-uninstall"), "rules.0.resourceNames.1", name},
		"lease of uninstall":    {"crds.install=true", namespaced("Role", "seamark-uninstall"), "rules.1.resourceNames.1", name},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", workloads+","+test.set))
			if diff := cmp.Diff(test.want, at(objects[test.object], steps(test.path))); diff != "" {
				t.Errorf("%s, %s %s at %s (-want +got):\n%s", test.set, test.object.Kind, test.object.Name, test.path, diff)
			}
		})
	}
}

// steps splits a path at the dots that no backslash escapes.
func steps(path string) []string {
	const dot = "\x00"
	split := strings.Split(strings.ReplaceAll(path, `\.`, dot), ".")
	for i := range split {
		split[i] = strings.ReplaceAll(split[i], dot, ".")
	}
	return split
}

// TestImagePullJobAuthors checks what the value does with the policy of authors.
func TestImagePullJobAuthors(t *testing.T) {
	for _, action := range []string{"Warn", "Deny"} {
		objects := parse(
			t, template(t, tool(t, "helm"), "ns", "--set", workloads+",workloads.controllers={imagepulljob},workloads.imagePullJobAuthorEnforcement="+action),
		)
		binding := objects[key{Kind: "ValidatingAdmissionPolicyBinding", Name: "seamark-imagepulljob-author"}]
		actions, _, _ := unstructured.NestedStringSlice(binding, "spec", "validationActions")
		expect.Equal(t, "actions", []string{action, "Audit"}, actions)
	}
}

// TestPolicyCoversRights checks that the policy of pods applies to every write of pods that the roles of the
// program permit, with every controller enabled.
func TestPolicyCoversRights(t *testing.T) {
	objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", workloads+
		",sidecarSets.enabled=true,workloads.controllers={cloneset,statefulset,advancedcronjob,daemonset,broadcastjob,imagepulljob}"))
	policy := objects[key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-workloads-pods"}]
	rules, _ := at(any(policy), []string{"spec", "matchConstraints", "resourceRules"}).([]any)
	if len(rules) != 1 {
		t.Fatalf("the policy has %d rules, want 1", len(rules))
	}
	covered, _ := at(rules[0], []string{"resources"}).([]any)
	permitted := map[any]bool{}
	for k, object := range objects {
		if k.Kind != "ClusterRole" || !strings.HasPrefix(k.Name, "seamark-workloads") {
			continue
		}
		role := &rbacv1.ClusterRole{}
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, role))
		for _, rule := range role.Rules {
			readOnly := !slices.ContainsFunc(rule.Verbs, func(verb string) bool {
				return !slices.Contains([]string{"get", "list", "watch"}, verb)
			})
			for _, resource := range rule.Resources {
				if !readOnly && (resource == "*" || strings.HasPrefix(resource, "pods")) {
					permitted[resource] = true
				}
			}
		}
	}
	if !permitted["pods"] || !permitted["pods/status"] {
		t.Errorf("the roles permit writes of %v only", slices.Collect(maps.Keys(permitted)))
	}
	for _, resource := range covered {
		delete(permitted, resource)
	}
	// Each binding applies the policy to a part of these writes.
	writes := func(rules any) map[string]bool {
		found := map[string]bool{}
		list, _ := rules.([]any)
		for _, rule := range list {
			resources, _ := at(rule, []string{"resources"}).([]any)
			operations, _ := at(rule, []string{"operations"}).([]any)
			for _, resource := range resources {
				for _, operation := range operations {
					found[fmt.Sprint(operation, " ", resource)] = true
				}
			}
		}
		return found
	}
	bound := map[string]bool{}
	// The one for deletions and status comes first, also by name.
	bindings := []string{"seamark-workloads-pod-deletion-and-status", "seamark-workloads-pods"}
	manifest, err := os.ReadFile("../../config/workloads/policy.yaml")
	expect.NoError(t, err)
	at0 := bytes.Index(manifest, []byte("kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: "+bindings[0]+"\n"))
	at1 := bytes.Index(manifest, []byte("kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: "+bindings[1]+"\n"))
	if at0 < 0 || at1 < at0 || !slices.IsSorted(bindings) {
		t.Errorf("bindings %v are at %d and %d: an upgrade would take writes from one before the other has them", bindings, at0, at1)
	}
	for _, name := range bindings {
		binding := objects[key{Kind: "ValidatingAdmissionPolicyBinding", Name: name}]
		for write := range writes(at(any(binding), []string{"spec", "matchResources", "resourceRules"})) {
			if bound[write] {
				t.Errorf("two bindings apply to %s", write)
			}
			bound[write] = true
		}
	}
	expect.Equal(t, "the writes of both bindings", writes(any(rules)), bound)
	if len(permitted) > 0 {
		t.Errorf("the policy covers %v, and the roles also permit writes of %v", covered, slices.Collect(maps.Keys(permitted)))
	}
}
