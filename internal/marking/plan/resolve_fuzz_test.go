// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/builders"
)

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
			if _, err := probe.Parse(&spec, "10.0.0.7"); err != nil {
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
