// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const workloads = "workloads.enabled=true"

// TestWorkloadsMatchConfig compares the chart with config/workloads.
func TestWorkloadsMatchConfig(t *testing.T) {
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/workloads"))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", workloads)))
	delete(want, key{Kind: "Namespace", Name: "seamark-system"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-config/workloads +chart):\n%s", diff)
	}
}

// TestWorkloadsAreOffByDefault checks that a release without the program has none of its objects.
func TestWorkloadsAreOffByDefault(t *testing.T) {
	for k := range parse(t, template(t, tool(t, "helm"), "ns")) {
		if strings.HasPrefix(k.Name, "seamark-workloads") || k.Name == "clonesets.apps.kruise.io" || k.Name == "statefulsets.apps.kruise.io" {
			t.Errorf("the chart has %s %s, but the program is off", k.Kind, k.Name)
		}
	}
}

// TestEnabledControllers checks that a release has only the CRDs of the enabled controllers, that
// an uninstallation keeps them, and that the program may access only their kinds.
func TestEnabledControllers(t *testing.T) {
	clones, stateful := "clonesets.apps.kruise.io", "statefulsets.apps.kruise.io"
	for controllers, test := range map[string]struct {
		crds  []string
		kinds []string
		file  string
	}{
		"cloneset":             {[]string{clones}, []string{"clonesets"}, "controllers:\n  statefulSet:\n    enabled: false\n"},
		"statefulset":          {[]string{stateful}, []string{"statefulsets"}, "controllers:\n  cloneSet:\n    enabled: false\n"},
		"statefulset,cloneset": {[]string{clones, stateful}, []string{"clonesets", "statefulsets"}, ""},
	} {
		t.Run(controllers, func(t *testing.T) {
			rendered := template(t, tool(t, "helm"), "ns", "--set", workloads+",workloads.controllers={"+controllers+"}")
			objects := parse(t, rendered)
			var crds []string
			for k := range objects {
				if k.Kind == "CustomResourceDefinition" && (k.Name == clones || k.Name == stateful) {
					crds = append(crds, k.Name)
				}
			}
			slices.Sort(crds)
			if diff := cmp.Diff(test.crds, crds); diff != "" {
				t.Errorf("CRDs (-want +got):\n%s", diff)
			}
			if got, want := strings.Count(string(rendered), "helm.sh/resource-policy: keep"), 3+len(test.crds); got != want {
				t.Errorf("%d CRDs are kept by an uninstallation, want %d", got, want)
			}
			for _, role := range []string{"seamark-workloads", "seamark-workloads-view", "seamark-workloads-edit"} {
				if diff := cmp.Diff(test.kinds, kindsOf(t, objects[key{Kind: "ClusterRole", Name: role}])); diff != "" {
					t.Errorf("workloads in ClusterRole %s (-want +got):\n%s", role, diff)
				}
			}
			file, _ := at(any(objects[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-workloads"}]), []string{"data", "workloads.yaml"}).(string)
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
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, role); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			if strings.HasSuffix(resource, "sets") && !slices.Contains(kinds, resource) {
				kinds = append(kinds, resource)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// TestWorkloadsValues checks the effect of the values of seamark-workloads.
func TestWorkloadsValues(t *testing.T) {
	const (
		pod       = "spec.template.spec."
		container = pod + "containers.0."
		meta      = "spec.template.metadata."
		name      = "seamark-workloads"
		digest    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	namespaced := func(kind, name string) key { return key{Kind: kind, Namespace: "ns", Name: name} }
	program := namespaced("Deployment", name)
	policy := namespaced("NetworkPolicy", name)
	admission := key{Kind: "ValidatingAdmissionPolicy", Name: "seamark-workloads-pods"}
	for name, test := range map[string]struct {
		set    string
		object key
		path   string
		want   any
	}{
		"image":                 {"image.registry=r,image.tag=t", program, container + "image", "r/seamark-workloads:t"},
		"repository":            {"workloads.image.repository=x/y", program, container + "image", "docker.io/seamark/x/y"},
		"digest":                {"workloads.image.digest=" + digest, program, container + "image", "docker.io/seamark/seamark-workloads@" + digest},
		"pull policy":           {"image.pullPolicy=Always", program, container + "imagePullPolicy", "Always"},
		"pull secret":           {"imagePullSecrets[0].name=s", program, pod + "imagePullSecrets.0.name", "s"},
		"service account":       {"crds.install=true", program, pod + "serviceAccountName", name},
		"replicas by default":   {"crds.install=true", program, "spec.replicas", int64(2)},
		"replicas":              {"workloads.replicas=3", program, "spec.replicas", int64(3)},
		"budget":                {"workloads.replicas=2", namespaced("PodDisruptionBudget", name), "spec.maxUnavailable", int64(1)},
		"budget of one replica": {"workloads.replicas=1", namespaced("PodDisruptionBudget", name), "spec", nil},
		"no budget":             {"workloads.podDisruptionBudget.enabled=false", namespaced("PodDisruptionBudget", name), "spec", nil},
		"flag":                  {"workloads.extraArgs={-v=2}", program, container + "args.0", "-v=2"},
		"affinity":              {"workloads.affinity.nodeAffinity.a=b", program, pod + "affinity.nodeAffinity.a", "b"},
		"annotation":            {"workloads.podAnnotations.a=b", program, meta + "annotations.a", "b"},
		"label":                 {"workloads.podLabels.a=b", program, meta + "labels.a", "b"},
		"node":                  {"workloads.nodeSelector.a=b", program, pod + "nodeSelector.a", "b"},
		"toleration":            {"workloads.tolerations[0].key=a", program, pod + "tolerations.0.key", "a"},
		"priority":              {"workloads.priorityClassName=p", program, pod + "priorityClassName", "p"},
		"variable":              {"workloads.env[0].name=A,workloads.env[0].value=b", program, container + "env.0.value", "b"},
		"memory":                {"workloads.resources.limits.memory=1Gi", program, container + "env.0.value", "921MiB"},
		"config file":           {"workloads.config.logging.verbosity=2", program, container + "args.0", "--config=/etc/seamark/workloads.yaml"},
		"concurrency":           {"workloads.config.controllers.cloneSet.concurrency=4", program, container + "args.0", "--config=/etc/seamark/workloads.yaml"},
		"gate":                  {"workloads.config.featureGates.RecreatePodWhenChangeVCTInCloneSetGate=true", program, container + "args.0", "--config=/etc/seamark/workloads.yaml"},
		"namespace of a lease":  {"workloads.config.openKruise.namespace=kruise", program, container + "args.0", "--config=/etc/seamark/workloads.yaml"},
		"config volume":         {"workloads.config.logging.verbosity=2", program, pod + "volumes.0.configMap.name", name},
		"no CRDs":               {"crds.install=false", key{Kind: "CustomResourceDefinition", Name: "clonesets.apps.kruise.io"}, "metadata.name", nil},
		"no network policy":     {"networkPolicy.enabled=false", policy, "spec", nil},
		"metrics clients":       {"networkPolicy.metricsFrom[0].podSelector.a=b", policy, "spec.ingress.1.from.0.podSelector.a", "b"},
		"egress":                {"networkPolicy.egress[0].ports[0].port=443", policy, "spec.egress.0.ports.0.port", int64(443)},
		"metrics":               {"monitoring.serviceMonitor.enabled=true", namespaced("ServiceMonitor", name), "spec.endpoints.0.port", "metrics"},
		"scraped pods":          {"monitoring.serviceMonitor.enabled=true", namespaced("Service", name+"-metrics"), "spec.selector.app\\.kubernetes\\.io/component", "workloads"},
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
