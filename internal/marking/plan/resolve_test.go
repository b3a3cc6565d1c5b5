// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestResolve(t *testing.T) {
	grace, service, whole := int64(5), "match", ""
	kubernetes := plan.KubernetesDefaults()
	upstream := plan.Defaults{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1}
	cases := map[string]struct {
		defaults plan.Defaults
		in, want corev1.Probe
	}{
		"unset fields": {
			defaults: kubernetes,
			in:       corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}}},
			want: corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}},
				PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
			},
		},
		"other defaults": {
			defaults: upstream,
			in:       corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, InitialDelaySeconds: -1},
			want: corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{}},
				PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
			},
		},
		"set fields, with a grace period": {
			defaults: kubernetes,
			in: corev1.Probe{
				ProbeHandler:        corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Service: &service}},
				InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5,
				TerminationGracePeriodSeconds: &grace,
			},
			want: corev1.Probe{
				ProbeHandler:        corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Service: &service}},
				InitialDelaySeconds: 1, PeriodSeconds: 2, TimeoutSeconds: 3, SuccessThreshold: 4, FailureThreshold: 5,
			},
		},
		"gRPC without service": {
			defaults: upstream,
			in:       corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000}}},
			want: corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Service: &whole}},
				PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
			},
		},
		"HTTP with port name and host, without scheme and path": {
			defaults: upstream,
			in: corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Host: "example.com", Port: intstr.FromString("http"),
				HTTPHeaders: []corev1.HTTPHeader{{Name: "A", Value: "b"}},
			}}},
			want: corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Port: intstr.FromInt32(8080), Scheme: corev1.URISchemeHTTP, Path: "/",
					HTTPHeaders: []corev1.HTTPHeader{{Name: "A", Value: "b"}},
				}},
				PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
			},
		},
		"TCP with number in a string and host": {
			defaults: upstream,
			in: corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
				Host: "example.com", Port: intstr.FromString("6379"),
			}}},
			want: corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(6379)}},
				PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1,
			},
		},
	}
	pod := builders.Pod("ns", "a").Label("app", "game").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 8080}).Build()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := builders.Marker("ns", "web").Probe(builders.Probe("p").Container("web")).Build()
			m.Spec.Probes[0].Probe.Probe = tc.in
			before := m.DeepCopy()
			got := plan.Pod(pod, compile(t, m), tc.defaults)
			if len(got.Probes) != 1 {
				t.Fatalf("planned %d probes, problems %v", len(got.Probes), got.Problems)
			}
			want := v1alpha1.ContainerProbe{
				Name: "web#p", ContainerName: "web", Probe: v1alpha1.ContainerProbeSpec{Probe: tc.want},
			}
			if diff := cmp.Diff(want, got.Probes[0].Plan, ignorePlan()); diff != "" {
				t.Errorf("probe (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, m); diff != "" {
				t.Errorf("marker changed (-before +after):\n%s", diff)
			}
		})
	}
}
