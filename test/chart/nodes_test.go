// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
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
		expect.Equal(t, want, terms[0].MatchExpressions, "%s: excluded nodes", source)
		affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: pod.Spec})
		for name, tc := range nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.io/os": "linux"}}}
			maps.Copy(node.Labels, tc.labels)
			if runs, err := affinity.Match(node); runs != tc.agent || err != nil {
				t.Errorf("%s: node %s runs an agent: %t, %v, want %t", source, name, runs, err, tc.agent)
			}
			expect.Equal(t, tc.agent, serverless.HasAgent(tc.labels), "the manager expects an agent on node %s", name)
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
	expect.Equal(t, &corev1.SELinuxOptions{Type: "spc_t"}, pod.Spec.SecurityContext.SELinuxOptions, "SELinux options")
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE"}},
	}
	expect.Equal(t, want, pod.Spec.Containers[0].SecurityContext, "security context")
}
