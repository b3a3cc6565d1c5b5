// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/process"
)

// repository is the root of the repository.
const repository = "../.."

// key identifies a rendered object.
type key struct{ Kind, Namespace, Name string }

// TestChartMatchesConfig compares the chart with config/default. Only the chart has hooks.
func TestChartMatchesConfig(t *testing.T) {
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/default"))
	// Helm creates the namespace with --create-namespace.
	delete(want, key{Kind: "Namespace", Name: "seamark-system"})
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system")))
	expect.Equal(t, "objects", want, got)
}

func withoutHooks(objects map[key]map[string]any) map[key]map[string]any {
	maps.DeleteFunc(objects, func(_ key, object map[string]any) bool {
		return at(object, []string{"metadata", "annotations", "helm.sh/hook"}) != nil
	})
	return objects
}

// TestNamespace checks that every reference to a namespace is to that of the release.
func TestNamespace(t *testing.T) {
	for _, values := range []string{"", everything, "featureGates: {EnablePodProbeMarkerOnServerless: true}"} {
		rendered := string(template(t, tool(t, "helm"), "elsewhere", "--values", valuesFile(t, values)))
		if strings.Contains(rendered, "seamark-system") {
			t.Error("a release in the namespace elsewhere refers to seamark-system")
		}
		for k := range parse(t, []byte(rendered)) {
			if k.Namespace != "" && k.Namespace != "elsewhere" {
				t.Errorf("%s %s is in namespace %s, want elsewhere", k.Kind, k.Name, k.Namespace)
			}
		}
	}
}

// TestValues checks the effect of each value.
func TestValues(t *testing.T) {
	const (
		pod       = "spec.template.spec."
		container = pod + "containers.0."
		notes     = "spec.template.metadata.annotations."
		labels    = "spec.template.metadata.labels."
		digest    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	namespaced := func(kind, name string) key { return key{Kind: kind, Namespace: "ns", Name: name} }
	const name = "seamark-manager"
	manager := namespaced("Deployment", name)
	agent := namespaced("DaemonSet", "seamark-agent")
	helm := tool(t, "helm")
	markers := key{Kind: "CustomResourceDefinition", Name: "podprobemarkers.apps.kruise.io"}
	for name, test := range map[string]struct {
		set    string
		object key
		path   string
		want   any
	}{
		"manager image":           {"image.registry=r,image.tag=t", manager, container + "image", "r/seamark-manager:t"},
		"agent image":             {"image.registry=r,image.tag=t", agent, container + "image", "r/seamark-agent:t"},
		"manager repository":      {"manager.image.repository=x/y", manager, container + "image", "docker.io/seamark/x/y"},
		"agent digest":            {"agent.image.digest=" + digest, agent, container + "image", "docker.io/seamark/seamark-agent@" + digest},
		"manager digest":          {"manager.image.digest=" + digest, manager, container + "image", "docker.io/seamark/seamark-manager@" + digest},
		"agent repository":        {"agent.image.repository=z", agent, container + "image", "docker.io/seamark/z"},
		"pull policy":             {"image.pullPolicy=Always", agent, container + "imagePullPolicy", "Always"},
		"pull secret":             {"imagePullSecrets[0].name=s", agent, pod + "imagePullSecrets.0.name", "s"},
		"job's pull secret":       {"imagePullSecrets[0].name=s", namespaced("Job", "seamark-uninstall"), pod + "imagePullSecrets.0.name", "s"},
		"manager replicas":        {"manager.replicas=3", manager, "spec.replicas", int64(3)},
		"budget of one replica":   {"manager.replicas=1", namespaced("PodDisruptionBudget", name), "spec", nil},
		"no budget":               {"manager.podDisruptionBudget.enabled=false", namespaced("PodDisruptionBudget", name), "spec", nil},
		"manager flag":            {"manager.extraArgs={-v=2}", manager, container + "args.0", "-v=2"},
		"agent flag":              {"agent.extraArgs={-v=2}", agent, container + "args.2", "-v=2"},
		"manager affinity":        {"manager.affinity.nodeAffinity.a=b", manager, pod + "affinity.nodeAffinity.a", "b"},
		"agent affinity":          {"agent.affinity.podAffinity.a=b", agent, pod + "affinity.podAffinity.a", "b"},
		"manager annotation":      {"manager.podAnnotations.a=b", manager, notes + "a", "b"},
		"agent annotation":        {"agent.podAnnotations.a=b", agent, notes + "a", "b"},
		"manager label":           {"manager.podLabels.a=b", manager, labels + "a", "b"},
		"agent label":             {"agent.podLabels.a=b", agent, labels + "a", "b"},
		"manager node":            {"manager.nodeSelector.a=b", manager, pod + "nodeSelector.a", "b"},
		"agent node":              {"agent.nodeSelector.a=b", agent, pod + "nodeSelector.a", "b"},
		"manager toleration":      {"manager.tolerations[0].key=a", manager, pod + "tolerations.0.key", "a"},
		"agent toleration":        {"agent.tolerations[0].key=a", agent, pod + "tolerations.0.key", "a"},
		"manager priority":        {"manager.priorityClassName=p", manager, pod + "priorityClassName", "p"},
		"agent without priority":  {"agent.priorityClassName=", agent, pod + "priorityClassName", nil},
		"manager variable":        {"manager.env[0].name=A,manager.env[0].value=b", manager, container + "env.1.value", "b"},
		"agent variable":          {"agent.env[0].name=A,agent.env[0].value=b", agent, container + "env.3.value", "b"},
		"manager memory":          {"manager.resources.limits.memory=1Gi", manager, container + "env.0.value", "921MiB"},
		"manager memory, decimal": {"manager.resources.limits.memory=1e9", manager, container + "env", nil},
		"agent memory":            {"agent.resources.limits.memory=100Mi", agent, container + "resources.limits.memory", "100Mi"},
		"manager memory, own env": {
			"manager.resources.limits.memory=1Gi,manager.env[0].name=GOMEMLIMIT,manager.env[0].value=1GiB", manager, container + "env.0.value", "1GiB",
		},
		"agent memory by default":  {"agent.priorityClassName=p", agent, container + "resources.limits.memory", "256Mi"},
		"agent without limit":      {"agent.resources.limits=null", agent, container + "env.2", nil},
		"agent memory limit of Go": {"agent.resources.limits.memory=100Mi", agent, container + "env.2.value", "90MiB"},
		"manager configuration":    {"manager.config.logging.verbosity=2", manager, container + "args.0", "--config=/etc/seamark/manager.yaml"},
		"manager config volume":    {"manager.config.logging.verbosity=2", manager, pod + "volumes.0.configMap.name", name},
		"feature gate":             {"featureGates.PodProbeMarkerGate=false", manager, container + "args.0", "--config=/etc/seamark/manager.yaml"},
		"agent configuration":      {"agent.config.execConcurrency=4", agent, container + "args.1", "--config=/etc/seamark/agent.yaml"},
		"agent config volume":      {"agent.config.execConcurrency=4", agent, pod + "volumes.1.configMap.name", "seamark-agent"},
		"agent socket":             {"agent.criEndpoint=unix:///run/x", agent, container + "args.1", "--cri-endpoint=unix:///run/x"},
		"agent port":               {"agent.port=1234", agent, container + "ports.0.hostPort", int64(1234)},
		"agent port flag":          {"agent.port=1234", agent, container + "args.1", "--metrics-bind-address=[$(HOST_IP)]:1234"},
		"agent folder":             {"agent.runtimeFolder=/x", agent, pod + "volumes.0.hostPath.path", "/x"},
		"agent rollout":            {"agent.maxUnavailable=2", agent, "spec.updateStrategy.rollingUpdate.maxUnavailable", int64(2)},
		"no CRDs":                  {"crds.install=false", markers, "metadata.name", nil},
		"no quota":                 {"priorityClassQuota=false", namespaced("ResourceQuota", "seamark-priority-classes"), "spec", nil},
		"no network policy":        {"networkPolicy.enabled=false", namespaced("NetworkPolicy", name), "spec", nil},
		"metrics clients": {
			"networkPolicy.metricsFrom[0].podSelector.a=b", namespaced("NetworkPolicy", name), "spec.ingress.1.from.0.podSelector.a", "b",
		},
		"ingress only":       {"networkPolicy.enabled=true", namespaced("NetworkPolicy", name), "spec.policyTypes.1", nil},
		"egress":             {"networkPolicy.egress[0].ports[0].port=443", namespaced("NetworkPolicy", name), "spec.egress.0.ports.0.port", int64(443)},
		"egress policy type": {"networkPolicy.egress[0].ports[0].port=443", namespaced("NetworkPolicy", name), "spec.policyTypes.1", "Egress"},
		"no cleanup":         {"uninstall.cleanUp=false", namespaced("Job", "seamark-uninstall"), "spec", nil},
		"cleanup deadline":   {"uninstall.timeoutSeconds=60", namespaced("Job", "seamark-uninstall"), "spec.activeDeadlineSeconds", int64(60)},
		"cleanup timeout":    {"uninstall.timeoutSeconds=60", namespaced("Job", "seamark-uninstall"), container + "args.1", "--timeout=55s"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, helm, "ns", "--set", test.set))
			if diff := cmp.Diff(test.want, at(objects[test.object], strings.Split(test.path, "."))); diff != "" {
				t.Errorf("%s, %s %s at %s (-want +got):\n%s", test.set,
					test.object.Kind, test.object.Name, test.path, diff)
			}
		})
	}
}

// at returns the value at path, whose steps are map keys and list indices, or nil if there
// is none.
func at(value any, path []string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// template renders the chart for a release in the namespace.
func template(t *testing.T, helm, namespace string, args ...string) []byte {
	t.Helper()
	return output(t, helm, append([]string{"template", "seamark", "charts/seamark", "--namespace", namespace}, args...)...)
}

// tool returns the path of a tool that make has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := process.Built(name, "verify-chart")
	expect.NoError(t, err)
	return path
}

// output runs a program in the repository's root and returns its standard output.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = repository
	return []byte(process.Output(t, command))
}

// parse decodes rendered manifests and normalizes them: it removes Helm's own labels and
// annotations, and the tags of Seamark's images.
func parse(t *testing.T, rendered []byte) map[key]map[string]any {
	t.Helper()
	objects := map[key]map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(rendered), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		expect.NoErrorf(t, err, "parse")
		if object.Object == nil {
			continue
		}
		normalize(object)
		k := key{object.GetKind(), object.GetNamespace(), object.GetName()}
		if _, twice := objects[k]; twice {
			t.Errorf("%v is rendered twice", k)
		}
		objects[k] = object.Object
	}
}

func normalize(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	for _, name := range []string{"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"} {
		delete(labels, name)
	}
	if len(labels) == 0 {
		labels = nil
	}
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		image, _ := c.(map[string]any)["image"].(string)
		for _, tag := range []string{":latest", ":dev"} {
			image = strings.TrimSuffix(image, tag)
		}
		c.(map[string]any)["image"] = image
	}
	if containers != nil {
		_ = unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", "containers")
	}
}
