// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestResolve(t *testing.T) {
	service, whole := "match", ""
	httpGet := func(action corev1.HTTPGetAction) corev1.ProbeHandler {
		action.HTTPHeaders = []corev1.HTTPHeader{{Name: "A", Value: "b"}}
		return corev1.ProbeHandler{HTTPGet: &action}
	}
	tcpSocket := func(action corev1.TCPSocketAction) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &action}
	}
	grpc := func(service *string) corev1.ProbeHandler {
		return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9000, Service: service}}
	}
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"a"}}}
	times := func(delay, period, timeout, success, failure int32) corev1.Probe {
		return corev1.Probe{
			InitialDelaySeconds: delay, PeriodSeconds: period, TimeoutSeconds: timeout, SuccessThreshold: success, FailureThreshold: failure,
		}
	}
	kubernetes := plan.KubernetesDefaults()
	upstream := plan.Defaults{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 1}
	cases := map[string]struct {
		defaults         plan.Defaults
		in, want         corev1.ProbeHandler
		times, wantTimes corev1.Probe
	}{
		"unset fields":         {kubernetes, exec, exec, corev1.Probe{}, times(0, 10, 1, 1, 3)},
		"other defaults":       {upstream, exec, exec, times(-1, 0, 0, 0, 0), times(0, 1, 1, 1, 1)},
		"set fields":           {kubernetes, grpc(&service), grpc(&service), times(1, 2, 3, 4, 5), times(1, 2, 3, 4, 5)},
		"gRPC without service": {upstream, grpc(nil), grpc(&whole), corev1.Probe{}, times(0, 1, 1, 1, 1)},
		"HTTP with port name and host, without scheme and path": {
			upstream, httpGet(corev1.HTTPGetAction{Host: "example.com", Port: intstr.FromString("http")}),
			httpGet(corev1.HTTPGetAction{Port: intstr.FromInt32(8080), Scheme: "HTTP", Path: "/"}), corev1.Probe{}, times(0, 1, 1, 1, 1),
		},
		"TCP with number in a string and host": {
			upstream, tcpSocket(corev1.TCPSocketAction{Host: "example.com", Port: intstr.FromString("6379")}),
			tcpSocket(corev1.TCPSocketAction{Port: intstr.FromInt32(6379)}), corev1.Probe{}, times(0, 1, 1, 1, 1),
		},
	}
	pod := builders.Pod("ns", "a").Label("app", "game").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 8080}).Build()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := builders.Marker("ns", "web").Probe(builders.Probe("p").Container("web")).Build()
			tc.times.ProbeHandler, tc.wantTimes.ProbeHandler = tc.in, tc.want
			tc.times.TerminationGracePeriodSeconds = new(int64(5)) // It has no effect.
			m.Spec.Probes[0].Probe.Probe = tc.times
			before := m.DeepCopy()
			got := plan.Pod(pod, compile(t, m), tc.defaults)
			if len(got.Probes) != 1 {
				t.Fatalf("planned %d probes, problems %v", len(got.Probes), got.Problems)
			}
			want := v1alpha1.ContainerProbe{
				Name: "web#p", ContainerName: "web", Probe: v1alpha1.ContainerProbeSpec{Probe: tc.wantTimes},
			}
			expect.Equal(t, "probe", want, got.Probes[0].Plan, ignorePlan())
			expect.Equal(t, "marker changed", before, m)
		})
	}
}

// FuzzResolve plans probes that were not validated. Every probe in the plan must have its
// defaults, and the agent must be able to parse it.
func FuzzResolve(f *testing.F) {
	f.Add(byte(0), int32(8080), "", "/", int32(0), int32(0))
	f.Add(byte(1), int32(0), "web", "/idle?a=b", int32(-1), int32(5))
	f.Add(byte(2), int32(65535), "8080", "", int32(1), int32(1))
	f.Add(byte(3), int32(65536), "nope", "/100%", int32(1<<30), int32(-1<<31))
	f.Add(byte(4), int32(-1), "4294967376", "//host", int32(7), int32(7))
	f.Add(byte(15), int32(1), "", "/", int32(1), int32(1))
	f.Fuzz(func(t *testing.T, kind byte, number int32, name, path string, period, timeout int32) {
		port := intstr.FromInt32(number)
		if name != "" {
			port = intstr.FromString(name)
		}
		pod := builders.Pod("ns", "pod").Label("app", "game").Node("node").
			Container("web", corev1.ContainerPort{Name: "web", ContainerPort: number}).Build()
		p := builders.Probe("p").Container("web").Handler(handlerOf(kind, port, number, path)).Times(period, timeout)
		compiled := compile(t, builders.Marker("ns", "m").Selector("app", "game").Probe(p).Build())
		for _, planned := range plan.Node([]*corev1.Pod{pod}, compiled, plan.KubernetesDefaults()).PodProbes {
			spec := planned.Probes[0].Probe.Probe
			if spec.PeriodSeconds < 1 || spec.TimeoutSeconds < 1 || spec.SuccessThreshold < 1 || spec.FailureThreshold < 1 {
				t.Errorf("missing defaults: %+v", spec)
			}
			if spec.HTTPGet != nil && !strings.HasPrefix(spec.HTTPGet.Path, "/") {
				continue
			}
			if _, err := probing.Parse(&spec, "10.0.0.7"); err != nil {
				t.Errorf("the agent rejects the planned probe: %v", err)
			}
		}
	})
}

// handlerOf returns a handler for each bit that is set.
func handlerOf(kind byte, port intstr.IntOrString, number int32, path string) corev1.ProbeHandler {
	var h corev1.ProbeHandler
	if kind&1 != 0 {
		h.HTTPGet = &corev1.HTTPGetAction{Port: port, Path: path}
	}
	if kind&2 != 0 {
		h.TCPSocket = &corev1.TCPSocketAction{Port: port}
	}
	if kind&4 != 0 {
		h.GRPC = &corev1.GRPCAction{Port: number}
	}
	if kind&8 != 0 {
		h.Exec = &corev1.ExecAction{Command: []string{"idle"}}
	}
	return h
}

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
			pods, waits := []*corev1.Pod{pod}, compile(
				t, builders.Marker("ns", "m").Selector("app", "game").Probe(builders.Probe("p").Condition("a/b").WaitForStarted()).Build(),
			)
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

func TestExclusiveValuesAreOfOneState(t *testing.T) {
	probe := func() *builders.ProbeBuilder {
		return builders.Probe("p").Label(v1alpha1.ProbeSucceeded, "role", "primary").Annotation(v1alpha1.ProbeSucceeded, "a", "b").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{})
	}
	for name, tc := range map[string]struct {
		probe   *builders.ProbeBuilder
		refused bool
	}{
		"other value": {probe: probe().Label(v1alpha1.ProbeFailed, "role", "replica")},
		"same label":  {probe: probe().Label(v1alpha1.ProbeFailed, "role", "primary"), refused: true},
		"label of the group": {probe: probe().Label(v1alpha1.ProbeUnknown, "shard", "none").
			Exclusive(v1alpha1.ProbeSucceeded, v1alpha1.ExclusivePolicy{PerLabel: "shard"}), refused: true},
		"same annotation": {probe: probe().Annotation(v1alpha1.ProbeUnknown, "a", "b"), refused: true},
	} {
		compiled, err := plan.Compile(builders.Marker("ns", "db").Probe(tc.probe).Build())
		if (errors.Is(err, plan.ErrExclusiveValue) || errors.Is(err, plan.ErrGroupLabel)) != tc.refused || err == nil && len(compiled.Exclusives()) != 1 {
			t.Errorf("%s: error %v, want one: %t", name, err, tc.refused)
		}
	}
}
