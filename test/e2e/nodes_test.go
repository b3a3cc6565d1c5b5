// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// soon is the limit for changes that an agent must not find only in its next full list of
// containers, one minute later.
const soon = 20 * time.Second

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

// TestContainerEndAfterAgentRestart ends a container on each node after the agents were killed:
// their event streams, which the runtime may still serve, take no event from the new agents.
func TestContainerEndAfterAgentRestart(t *testing.T) {
	s := newSuite(t)
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	labels := map[string]string{"app": "ending"}
	var pods []string
	for _, node := range nodes.Items {
		pod := newPod("ending-"+node.Name, "echo first >/tmp/say; until [ -e /tmp/end ]; do sleep 0.1; done; exit 3", labels)
		pod.Spec.NodeName, pod.Spec.RestartPolicy = node.Name, corev1.RestartPolicyNever
		// The second container keeps the pod running.
		other := newPod("other", idle, nil).Spec.Containers[0]
		other.Name = "other"
		pod.Spec.Containers = append(pod.Spec.Containers, other)
		s.create(pod)
		pods = append(pods, pod.Name)
	}
	s.create(newMarker("ending", labels, newProbe("alive", shell("cat /tmp/say"), condition("test.dev/alive"))))
	s.running(pods...)
	for _, pod := range pods {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionTrue, "first"))
	}

	run := func(pod, line string) { s.Kubectl("exec", pod, "--container=main", "--", "sh", "-c", line) }
	s.kill("seamark-agent")
	for _, pod := range pods {
		run(pod, "echo second >/tmp/say")
	}
	for _, pod := range pods {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionTrue, "second"))
	}
	start := time.Now()
	for _, pod := range pods {
		run(pod, "touch /tmp/end")
	}
	for _, pod := range pods {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionFalse, "exited with code 3"))
	}
	if took := time.Since(start); took > soon {
		t.Errorf("the ends of the containers were reported after %s, want at most %s", took, soon)
	}
	s.systemReady("agent")
}
