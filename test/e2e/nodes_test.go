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
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
			s.exec(shell, "nc -w 5 "+s.Pod(server).Status.PodIP+" 7070 </dev/null")
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

// newTarget returns a pod that runs test/e2e/target, with named ports.
func newTarget(name string, labels map[string]string) *corev1.Pod {
	pod := newPod(name, "", labels)
	pod.Spec.Containers[0] = corev1.Container{
		Name: "main", Image: targetImage, ImagePullPolicy: corev1.PullNever,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080}, {Name: "grpc", ContainerPort: 9090},
			{Name: "no-health", ContainerPort: 9091}, {Name: "socket", ContainerPort: 7070},
		},
	}
	return pod
}

func httpGet(port intstr.IntOrString, path string, headers ...corev1.HTTPHeader) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: port, Path: path, HTTPHeaders: headers}}
}

func tcpSocket(port intstr.IntOrString) corev1.ProbeHandler {
	return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
}

func grpcHealth(port int32, service string) corev1.ProbeHandler {
	return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port, Service: ptr.To(service)}}
}

func TestNetworkProbes(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "target"}
	s.Create(newTarget("target", labels))
	s.running("target")

	cases := map[string]struct {
		handler corev1.ProbeHandler
		want    corev1.ConditionStatus
		says    string
	}{
		"http-named-port":   {httpGet(intstr.FromString("http"), "/ok"), corev1.ConditionTrue, "fine"},
		"http-status":       {httpGet(intstr.FromInt32(8080), "/fail"), corev1.ConditionFalse, "500"},
		"http-no-page":      {httpGet(intstr.FromInt32(8080), ""), corev1.ConditionFalse, "404"},
		"http-redirect":     {httpGet(intstr.FromInt32(8080), "/home"), corev1.ConditionTrue, "fine"},
		"http-redirect-bad": {httpGet(intstr.FromInt32(8080), "/lost"), corev1.ConditionFalse, "500"},
		"http-other-host":   {httpGet(intstr.FromInt32(8080), "/away"), corev1.ConditionTrue, "edirect"},
		"http-headers": {httpGet(intstr.FromInt32(8080), "/headers",
			corev1.HTTPHeader{Name: "X-Probe", Value: "one"}, corev1.HTTPHeader{Name: "X-Probe", Value: "two"},
			corev1.HTTPHeader{Name: "Host", Value: "game.example"}), corev1.ConditionTrue, "headers as sent"},
		"http-refused":    {httpGet(intstr.FromInt32(1), "/"), corev1.ConditionFalse, "refused"},
		"tcp-named-port":  {tcpSocket(intstr.FromString("socket")), corev1.ConditionTrue, ""},
		"tcp-refused":     {tcpSocket(intstr.FromInt32(1)), corev1.ConditionFalse, "refused"},
		"grpc-serving":    {grpcHealth(9090, "up"), corev1.ConditionTrue, ""},
		"grpc-server":     {grpcHealth(9090, ""), corev1.ConditionTrue, ""},
		"grpc-down":       {grpcHealth(9090, "down"), corev1.ConditionFalse, "NOT_SERVING"},
		"grpc-no-service": {grpcHealth(9090, "missing"), corev1.ConditionFalse, ""},
		"grpc-no-health":  {grpcHealth(9091, ""), corev1.ConditionFalse, ""},
	}
	marker := newMarker("target", labels)
	marker.Annotations = map[string]string{v1alpha1.PublishHTTPBodyAnnotationKey: "true"}
	for name, tc := range cases {
		marker.Spec.Probes = append(marker.Spec.Probes, newProbe(name, tc.handler, condition("test.dev/"+name)))
	}
	s.Create(marker)
	for name, tc := range cases {
		s.podIs("target", hasCondition("test.dev/"+name, tc.want, tc.says))
	}

	s.edit("target", func(m *v1alpha1.PodProbeMarker) { m.Annotations = nil })
	s.podIs("target", hasCondition("test.dev/http-named-port", corev1.ConditionTrue, "HTTP probe succeeded with statuscode: 200"))
}
