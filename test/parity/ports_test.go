// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package parity_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubeprobe "k8s.io/kubernetes/pkg/probe"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestPorts resolves named and numbered ports.
func TestPorts(t *testing.T) {
	ports := []corev1.ContainerPort{
		{Name: "web", ContainerPort: 8080}, {Name: "web", ContainerPort: 8081}, {Name: "udp", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
		{Name: "7070", ContainerPort: 7071}, {Name: "odd", ContainerPort: 70000}, {Name: "zero"}, {ContainerPort: 9090},
		{Name: "host", ContainerPort: 80, HostPort: 8000},
	}
	for name, port := range map[string]intstr.IntOrString{
		"number": intstr.FromInt32(80), "minimum": intstr.FromInt32(1), "maximum": intstr.FromInt32(65535),
		"zero": intstr.FromInt32(0), "negative": intstr.FromInt32(-1), "too large": intstr.FromInt32(65536),
		"name": intstr.FromString("web"), "UDP": intstr.FromString("udp"), "host port": intstr.FromString("host"),
		"unknown name": intstr.FromString("nope"), "different case": intstr.FromString("Web"),
		"number as string": intstr.FromString("9000"), "name that is a number": intstr.FromString("7070"),
		"too large as string": intstr.FromString("65536"), "more than 64 bits": intstr.FromString("99999999999999999999"),
		"more than 32 bits": intstr.FromString("4294967376"), "negative as string": intstr.FromString("-1"), "signed": intstr.FromString("+80"),
		"padded": intstr.FromString(" 80"), "hexadecimal": intstr.FromString("0x50"), "octal": intstr.FromString("0080"), "grouped": intstr.FromString("8_0"),
		"name of an invalid port": intstr.FromString("odd"), "name of port 0": intstr.FromString("zero"),
	} {
		t.Run(name, func(t *testing.T) {
			want, err := kubeprobe.ResolveContainerPort(port, &corev1.Container{Ports: ports})
			if err != nil {
				want = 0
			}
			if got := plannedPort(t, ports, port); got != want {
				t.Errorf("the kubelet resolves %s to %d, Seamark to %d", port.String(), want, got)
			}
		})
	}
}

// plannedPort returns the port in the plan of a pod, or 0 if the probe is not planned.
func plannedPort(t *testing.T, ports []corev1.ContainerPort, port intstr.IntOrString) int {
	t.Helper()
	pod := builders.Pod("ns", "pod").Node("node").Build()
	pod.Spec.Containers[0].Ports = ports
	pod.Labels = map[string]string{"app": "game"}
	marker := builders.Marker("ns", "m").Selector("app", "game").
		Probe(builders.Probe("p").Container(pod.Spec.Containers[0].Name)).Build()
	marker.Spec.Probes[0].Probe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	compiled, err := plan.Compile(marker)
	expect.NoError(t, err)
	spec := plan.Node([]*corev1.Pod{pod}, []*plan.Marker{compiled}, plan.KubernetesDefaults())
	if len(spec.PodProbes) == 0 {
		return 0
	}
	return spec.PodProbes[0].Probes[0].Probe.TCPSocket.Port.IntValue()
}
