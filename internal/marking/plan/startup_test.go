// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestStartup(t *testing.T) {
	exec := func(command ...string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}}
	}
	tcp := func(host, port string) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host, Port: intstr.FromString(port)}}
	}
	http := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "h", Port: intstr.FromInt32(80)}}
	seconds := func(s int64) *int64 { return &s }
	full := func(handler corev1.ProbeHandler, grace int64) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: handler, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3, TerminationGracePeriodSeconds: &grace,
		}
	}
	resolved := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}
	for name, tc := range map[string]struct {
		startup *corev1.Probe
		want    *corev1.Probe
		problem plan.Reason
	}{
		"none":          {},
		"exec":          {startup: &corev1.Probe{ProbeHandler: exec("a")}, want: full(exec("a"), 7)},
		"own grace":     {startup: &corev1.Probe{ProbeHandler: exec("a"), TerminationGracePeriodSeconds: seconds(2)}, want: full(exec("a"), 2)},
		"named port":    {startup: &corev1.Probe{ProbeHandler: tcp("", "http")}, want: full(resolved, 7)},
		"unknown port":  {startup: &corev1.Probe{ProbeHandler: tcp("", "web")}, problem: plan.StartupUnsupported},
		"host of TCP":   {startup: &corev1.Probe{ProbeHandler: tcp("h", "http")}, problem: plan.StartupUnsupported},
		"host of HTTP":  {startup: &corev1.Probe{ProbeHandler: http}, problem: plan.StartupUnsupported},
		"variable":      {startup: &corev1.Probe{ProbeHandler: exec("a", "x$(HOME)")}, problem: plan.StartupUnsupported},
		"long timeout":  {startup: &corev1.Probe{ProbeHandler: exec("a"), TimeoutSeconds: 301}, problem: plan.StartupUnsupported},
		"no handler":    {startup: &corev1.Probe{}, problem: plan.StartupUnsupported},
		"pod plan full": {startup: &corev1.Probe{ProbeHandler: exec(strings.Repeat("a", plan.MaxPodBytes))}, problem: plan.PodPlanFull},
	} {
		t.Run(name, func(t *testing.T) {
			pod := builders.Pod("ns", "a").Label("app", "game").Node("n").Build()
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
			pod.Status.ContainerStatuses = nil
			pod.Status.PodIP, pod.Spec.TerminationGracePeriodSeconds = "", seconds(7)
			pod.Spec.Containers[0].StartupProbe = tc.startup
			pods, waits := []*corev1.Pod{pod}, compile(t, builders.Marker("ns", "m").Selector("app", "game").Probe(builders.Probe("p").Condition("a/b").WaitForStarted()).Build())
			got := plan.Pod(pod, waits, plan.KubernetesDefaults())
			if tc.problem != "" {
				if len(got.Probes) != 0 || len(got.Problems) != 1 || got.Problems[0].Reason != tc.problem || got.Problems[0].Container != "main" {
					t.Errorf("plan %+v, want the problem %s", got, tc.problem)
				}
				return
			}
			expect.Equal(t, "startup probe", tc.want, got.Probes[0].Plan.Startup)
			// A pod without an address is planned only if no probe needs one.
			network := tc.want != nil && tc.want.Exec == nil
			if spec := plan.Node(pods, waits, plan.KubernetesDefaults()); (len(spec.PodProbes) == 0) != network {
				t.Errorf("%d pods planned without an address", len(spec.PodProbes))
			}
			ignores := compile(t, builders.Marker("ns", "m").Selector("app", "game").Probe(builders.Probe("p").Condition("a/b")).Build())
			if ignored := plan.Pod(pod, ignores, plan.KubernetesDefaults()); ignored.Probes[0].Plan.Startup != nil {
				t.Error("a probe that does not wait has a startup probe")
			}
		})
	}
}
