// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestEveryNode runs pods on each node, which the node's agent marks, and connects them.
func TestEveryNode(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	labels := map[string]string{"app": "spread"}
	var servers, shells []string
	for _, node := range nodes.Items {
		server, shell := newTarget("server-"+node.Name, labels), newPod("shell-"+node.Name, idle, labels)
		server.Spec.NodeName, shell.Spec.NodeName = node.Name, node.Name
		s.create(server, shell)
		servers, shells = append(servers, server.Name), append(shells, shell.Name)
	}
	s.create(newMarker("spread", labels, newProbe("socket", tcpSocket(intstr.FromInt32(7070)), condition("test.dev/socket"))))
	s.running(append(shells, servers...)...)
	for i, server := range servers {
		s.podIs(server, hasCondition("test.dev/socket", corev1.ConditionTrue))
		s.podIs(shells[i], hasCondition("test.dev/socket", corev1.ConditionFalse, "refused"))
		for _, shell := range shells {
			s.exec(shell, "nc -w 5 "+s.getPod(server).Status.PodIP+" 7070 </dev/null")
		}
	}
}
