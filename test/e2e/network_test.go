// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

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
	marker.Annotations = map[string]string{appsv1alpha1.PublishHTTPBodyAnnotationKey: "true"}
	for name, tc := range cases {
		marker.Spec.Probes = append(marker.Spec.Probes, newProbe(name, tc.handler, condition("test.dev/"+name)))
	}
	s.Create(marker)
	for name, tc := range cases {
		s.podIs("target", hasCondition("test.dev/"+name, tc.want, tc.says))
	}

	s.edit("target", func(m *appsv1alpha1.PodProbeMarker) { m.Annotations = nil })
	s.podIs("target", hasCondition("test.dev/http-named-port", corev1.ConditionTrue, "HTTP probe succeeded with statuscode: 200"))
}
