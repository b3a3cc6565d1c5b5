// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/serverless"
	"github.com/seamark-dev/seamark/test/expect"
)

func agentPod(t *testing.T, manifests []byte, namespace string) corev1.PodTemplateSpec {
	t.Helper()
	object := parse(t, manifests)[key{Kind: "DaemonSet", Namespace: namespace, Name: "seamark-agent"}]
	var pod corev1.PodTemplateSpec
	template := at(object, []string{"spec", "template"}).(map[string]any)
	expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod))
	return pod
}

// TestVirtualNodesRunNoAgents checks that the DaemonSet excludes exactly the nodes for which the
// manager writes no plan.
func TestVirtualNodesRunNoAgents(t *testing.T) {
	var want []corev1.NodeSelectorRequirement
	for _, label := range serverless.AgentlessLabels() {
		requirement := corev1.NodeSelectorRequirement{Key: label.Key, Operator: corev1.NodeSelectorOpDoesNotExist}
		if len(label.Values) > 0 {
			requirement.Operator, requirement.Values = corev1.NodeSelectorOpNotIn, label.Values
		}
		want = append(want, requirement)
	}
	nodes := map[string]struct {
		labels map[string]string
		agent  bool
	}{
		"plain":            {nil, true},
		"another type":     {map[string]string{"type": "gpu"}, true},
		"EC2":              {map[string]string{"eks.amazonaws.com/compute-type": "ec2"}, true},
		"instance type":    {map[string]string{"node.kubernetes.io/instance-type": "m5.large"}, true},
		"ACI":              {map[string]string{"type": "virtual-kubelet", "kubernetes.io/role": "agent"}, false},
		"KWOK":             {map[string]string{"type": "kwok"}, false},
		"Fargate":          {map[string]string{"eks.amazonaws.com/compute-type": "fargate"}, false},
		"Liqo":             {map[string]string{"liqo.io/type": "virtual-node"}, false},
		"Tencent Cloud":    {map[string]string{"node.kubernetes.io/instance-type": "eklet"}, false},
		"Oracle Cloud":     {map[string]string{"node-role.kubernetes.io/virtual-node": ""}, false},
		"Admiralty":        {map[string]string{"virtual-kubelet.io/provider": "admiralty"}, false},
		"virtual and real": {map[string]string{"type": "gpu", "liqo.io/type": "virtual-node"}, false},
	}
	for source, manifests := range map[string]struct {
		namespace string
		rendered  []byte
	}{
		"chart":  {"ns", template(t, tool(t, "helm"), "ns")},
		"config": {configv1alpha1.DefaultNamespace, output(t, tool(t, "kustomize"), "build", "config/default")},
	} {
		pod := agentPod(t, manifests.rendered, manifests.namespace)
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		if len(terms) != 1 {
			t.Fatalf("%s: %d terms, want 1: terms are alternatives", source, len(terms))
		}
		expect.Equal(t, fmt.Sprintf("%s: excluded nodes", source), want, terms[0].MatchExpressions)
		affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: pod.Spec})
		for name, tc := range nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.io/os": "linux"}}}
			maps.Copy(node.Labels, tc.labels)
			if runs, err := affinity.Match(node); runs != tc.agent || err != nil {
				t.Errorf("%s: node %s runs an agent: %t, %v, want %t", source, name, runs, err, tc.agent)
			}
			expect.Equal(t, fmt.Sprintf("the manager expects an agent on node %s", name), tc.agent, serverless.HasAgent(tc.labels))
		}
	}
}

// TestAgentPort checks that the agent's default port is not used by another component that runs
// on the network of nodes.
func TestAgentPort(t *testing.T) {
	var a configv1alpha1.AgentConfiguration
	configv1alpha1.SetAgentDefaults(&a)
	used := map[string][2]int64{
		"privileged":               {1, 1023},
		"etcd":                     {2378, 2382},
		"Cilium health and Hubble": {4240, 4250},
		"kube-apiserver":           {6443, 6444},
		"Antrea, Calico, OpenShift, node-exporter": {9000, 9999},
		"Kubernetes":                                 {10248, 10260},
		"OpenYurt, OpenShift's CSI drivers":          {10261, 10330},
		"KubeEdge, Karmada, OpenShift's controllers": {10350, 10360},
		"Kube-OVN":   {10660, 10667},
		"OpenKruise": {10221, 10221},
		"Istio":      {15000, 15090},
		"MicroK8s":   {16443, 16443},
		"OpenShift's cluster-kube-apiserver-operator": {17697, 17698},
		"MicroK8s' dqlite":                            {19001, 19001},
		"GKE and Fluent Bit":                          {2020, 2022},
		"kube-router":                                 {20241, 20244},
		"OpenShift's machine config server":           {22623, 22624},
		"OVN-Kubernetes and MetalLB":                  {29100, 29160},
		"NodePort and ephemeral ports":                {30000, 65535},
	}
	for component, ports := range used {
		if port := port(t, a.Metrics); ports[0] <= port && port <= ports[1] {
			t.Errorf("port %d is in the range %d-%d of %s", port, ports[0], ports[1], component)
		}
	}
}

// TestAgentSecurityValues checks that values change the SELinux context of the agent and single
// fields of its securityContext.
func TestAgentSecurityValues(t *testing.T) {
	pod := agentPod(t, template(t, tool(t, "helm"), "ns", "--set",
		"agent.seLinuxOptions.type=spc_t,agent.securityContext.capabilities.add={DAC_OVERRIDE}"), "ns")
	expect.Equal(t, "SELinux options", &corev1.SELinuxOptions{Type: "spc_t"}, pod.Spec.SecurityContext.SELinuxOptions)
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE"}},
	}
	expect.Equal(t, "security context", want, pod.Spec.Containers[0].SecurityContext)
}

const gate = "featureGates.EnablePodProbeMarkerOnServerless=true"

// hookKinds returns the kinds of the objects that exist only for the webhook.
func hookKinds(objects map[key]map[string]any) map[string]bool {
	kinds := map[string]bool{}
	for k := range objects {
		if k.Name == "seamark-webhook" {
			kinds[k.Kind] = true
		}
	}
	return kinds
}

// TestServerlessMatchesConfig compares the chart with config/serverless, except for how the
// gate is set: the chart uses a configuration file, config/ uses a flag.
func TestServerlessMatchesConfig(t *testing.T) {
	const name = "seamark-manager"
	want := parse(t, output(t, tool(t, "kustomize"), "build", "config/serverless"))
	got := withoutHooks(parse(t, template(t, tool(t, "helm"), "seamark-system", "--set", gate)))
	delete(want, key{Kind: "Namespace", Name: "seamark-system"})
	delete(got, key{Kind: "ConfigMap", Namespace: "seamark-system", Name: name})
	for _, objects := range []map[key]map[string]any{want, got} {
		deployment := objects[key{Kind: "Deployment", Namespace: "seamark-system", Name: name}]
		template, _ := at(deployment, []string{"spec", "template"}).(map[string]any)
		delete(template["metadata"].(map[string]any), "annotations")
		pod := template["spec"].(map[string]any)
		delete(pod, "volumes")
		container := at(pod, []string{"containers", "0"}).(map[string]any)
		if len(container["args"].([]any)) != 1 {
			t.Errorf("arguments %v, want one", container["args"])
		}
		delete(container, "args")
		delete(container, "volumeMounts")
	}
	expect.Equal(t, "objects", want, got)
	expect.Equal(t, "config/serverless has kinds of objects of the webhook", 7, len(hookKinds(want)))
}

func TestWebhookRequiresGate(t *testing.T) {
	all := map[string]bool{
		"MutatingWebhookConfiguration": true, "Service": true,
		"Secret": true, "Role": true, "RoleBinding": true, "ClusterRole": true, "ClusterRoleBinding": true,
	}
	for name, test := range map[string]struct {
		set  string
		want map[string]bool
	}{
		"default":       {"manager.replicas=2", map[string]bool{}},
		"gate enabled":  {gate, all},
		"gate disabled": {"featureGates.EnablePodProbeMarkerOnServerless=false", map[string]bool{}},
		"cert-manager": {gate + ",serverless.webhook.certificates=certManager", map[string]bool{
			"MutatingWebhookConfiguration": true, "Service": true, "Issuer": true, "Certificate": true,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", test.set))
			expect.Equal(t, "kinds", test.want, hookKinds(objects))
		})
	}
}

func TestServerlessValues(t *testing.T) {
	const hook = "webhooks.0."
	configuration := key{Kind: "MutatingWebhookConfiguration", Name: "seamark-webhook"}
	manager := key{Kind: "Deployment", Namespace: "ns", Name: "seamark-manager"}
	byCertManager := gate + ",serverless.webhook.certificates=certManager"
	for name, test := range map[string]struct {
		set    string
		object key
		path   string
		want   any
	}{
		"never rejects": {gate, configuration, hook + "failurePolicy", "Ignore"},
		"timeout":       {gate + ",serverless.webhook.timeoutSeconds=5", configuration, hook + "timeoutSeconds", int64(5)},
		"namespaces": {gate + ",serverless.webhook.excludedNamespaces={ops,kube-system}", configuration,
			hook + "namespaceSelector.matchExpressions.0.values", []any{"kube-system", "ns", "ops"}},
		"service":        {gate, configuration, hook + "clientConfig.service.namespace", "ns"},
		"port":           {gate, manager, "spec.template.spec.containers.0.ports.2.containerPort", int64(9443)},
		"CA injection":   {byCertManager, configuration, "metadata.annotations", map[string]any{"cert-manager.io/inject-ca-from": "ns/seamark-webhook"}},
		"volume":         {byCertManager, manager, "spec.template.spec.volumes.1.secret.secretName", "seamark-webhook-certificate"},
		"network policy": {gate, key{Kind: "NetworkPolicy", Namespace: "ns", Name: "seamark-manager"}, "spec.ingress.1.ports.0.port", "webhook"},
		// The name differs from the chart's own Secret, so that users can switch back and forth.
		"secret":      {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook"}, "spec.secretName", "seamark-webhook-certificate"},
		"certificate": {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook"}, "spec.dnsNames.0", "seamark-webhook.ns.svc"},
		// The authority does not change with the certificate.
		"issuer":    {byCertManager, key{Kind: "Issuer", Namespace: "ns", Name: "seamark-webhook"}, "spec.ca.secretName", "seamark-webhook-authority"},
		"authority": {byCertManager, key{Kind: "Certificate", Namespace: "ns", Name: "seamark-webhook-authority"}, "spec.privateKey.rotationPolicy", "Never"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := parse(t, template(t, tool(t, "helm"), "ns", "--set", test.set))
			expect.Equal(t, test.path, test.want, at(any(objects[test.object]), strings.Split(test.path, ".")))
		})
	}
	configMap := parse(t, template(t, tool(t, "helm"), "ns", "--set", byCertManager))[key{Kind: "ConfigMap", Namespace: "ns", Name: "seamark-manager"}]
	file, _ := at(any(configMap), []string{"data", "manager.yaml"}).(string)
	for _, part := range []string{"EnablePodProbeMarkerOnServerless: true", "certificates: certManager"} {
		if !strings.Contains(file, part) {
			t.Errorf("the manager's configuration lacks %q:\n%s", part, file)
		}
	}
}

// everything enables all features of the chart.
const everything = `
featureGates: {EnablePodProbeMarkerOnServerless: true}
serverless: {webhook: {certificates: certManager}}
policies: {markerAuthor: {enforcement: Deny}}
networkPolicy:
  egress: [{ports: [{port: 443}]}]
  metricsFrom: [{podSelector: {matchLabels: {a: b}}}]
monitoring:
  serviceMonitor: {enabled: true}
  podMonitor: {enabled: true}
  prometheusRule: {enabled: true}
  dashboard: {enabled: true}
manager: {config: {logging: {verbosity: 1}}}
agent: {config: {logging: {verbosity: 1}}}
workloads: {enabled: true, config: {logging: {verbosity: 1}}}
`

// TestPodSecurity checks that every pod of the chart, including those of hooks, meets the
// restricted Pod Security Standard and has a read-only root file system, except for what the
// agent needs.
func TestPodSecurity(t *testing.T) {
	got := map[string][]string{}
	for k, object := range parse(t, template(t, tool(t, "helm"), "ns", "--values", valuesFile(t, everything))) {
		spec := at(object, []string{"spec", "template", "spec"})
		if k.Kind == "Pod" {
			spec = object["spec"]
		}
		if spec == nil || !strings.HasPrefix(k.Name, "seamark-") {
			continue
		}
		var pod corev1.PodSpec
		expect.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(spec.(map[string]any), &pod))
		got[k.Kind+" "+k.Name] = grants(&pod)
	}
	want := map[string][]string{
		"Deployment seamark-manager":   nil,
		"Deployment seamark-workloads": nil,
		"Job seamark-uninstall":        nil,
		"Pod seamark-selftest":         nil,
		"DaemonSet seamark-agent":      {"host network", "host port 18357", "host path /run", "user 0"},
	}
	expect.Equal(t, "privileges of the pods", want, got)
}

// valuesFile writes values to a temporary file.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	expect.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	return file
}

// grants lists the privileges of a pod.
func grants(pod *corev1.PodSpec) []string {
	var all []string
	add := func(granted bool, format string, args ...any) {
		if granted {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	if pod.SecurityContext == nil {
		return []string{"no security context"}
	}
	add(pod.HostNetwork, "host network")
	add(pod.HostPID || pod.HostIPC, "host PID or IPC namespace")
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, port := range c.Ports {
			add(port.HostPort != 0, "host port %d", port.HostPort)
		}
		s := c.SecurityContext
		if s == nil {
			s = &corev1.SecurityContext{}
		}
		add(s.Privileged != nil && *s.Privileged, "privileged")
		add(s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "privilege escalation")
		add(s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, "writable root file system")
		add(s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0, "capabilities")
		for _, mount := range c.VolumeMounts {
			add(!mount.ReadOnly, "writable %s", mount.MountPath)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			add(true, "host path %s", volume.HostPath.Path)
		}
	}
	user := pod.SecurityContext.RunAsUser
	add(user == nil || *user == 0, "user 0")
	add(user != nil && *user != 0 && (pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot), "possibly root")
	profile := pod.SecurityContext.SeccompProfile
	add(profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
	return all
}
