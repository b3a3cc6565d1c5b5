// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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
		s.Create(server, shell)
		servers, shells = append(servers, server.Name), append(shells, shell.Name)
	}
	s.Create(newMarker("spread", labels, newProbe("socket", tcpSocket(intstr.FromInt32(7070)), condition("test.dev/socket"))))
	s.running(append(shells, servers...)...)
	for i, server := range servers {
		s.podIs(server, hasCondition("test.dev/socket", corev1.ConditionTrue))
		s.podIs(shells[i], hasCondition("test.dev/socket", corev1.ConditionFalse, "refused"))
		for _, shell := range shells {
			s.exec(shell, "nc -w 5 "+s.getPod(server).Status.PodIP+" 7070 </dev/null")
		}
	}
}

// TestContainerEndWithOtherSubscribers ends a container on each node while other clients follow
// the container events of the runtime. containerd 1.7 sends each event to only one of them.
func TestContainerEndWithOtherSubscribers(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	nodes := &corev1.NodeList{}
	cluster.Must(t, s.Client.List(t.Context(), nodes))
	labels := map[string]string{"app": "ending"}
	var pods []string
	for _, node := range nodes.Items {
		pod := newPod("ending-"+node.Name, "until [ -e /tmp/end ]; do sleep 0.1; done; exit 3", labels)
		pod.Spec.NodeName, pod.Spec.RestartPolicy = node.Name, corev1.RestartPolicyNever
		// The second container keeps the pod running.
		other := newPod("other", idle, nil).Spec.Containers[0]
		other.Name = "other"
		pod.Spec.Containers = append(pod.Spec.Containers, other)
		s.Create(pod)
		s.subscribe(node.Name)
		pods = append(pods, pod.Name)
	}
	s.Create(newMarker("ending", labels, newProbe("alive", shell("true"), condition("test.dev/alive"))))
	s.running(pods...)
	for _, pod := range pods {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionTrue))
	}
	start := time.Now()
	for _, pod := range pods {
		s.Kubectl("exec", pod, "--container=main", "--", "touch", "/tmp/end")
	}
	for _, pod := range pods {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionFalse, "exited with code 3"))
	}
	if took := time.Since(start); took > soon {
		t.Errorf("the ends of the containers were reported after %s, want at most %s", took, soon)
	}
}

// subscribe follows the container events of a node with many clients until the test ends.
func (s *suite) subscribe(node string) {
	s.Helper()
	const clients = 12
	conn, err := grpc.NewClient("unix://"+filepath.Join(s.Dir, "nodes", node, "containerd.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	cluster.Must(s, err)
	s.Cleanup(func() { _ = conn.Close() })
	for range clients {
		stream, err := runtimeapi.NewRuntimeServiceClient(conn).GetContainerEvents(s.Context(), &runtimeapi.GetEventsRequest{})
		cluster.Must(s, err)
		go func() {
			// containerd 1.6 has no events.
			for err == nil {
				_, err = stream.Recv()
			}
		}()
	}
}
