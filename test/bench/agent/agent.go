// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent measures the resources of the agent on a node with many pods: memory, processor
// time per probe by the difference of runs with and without it, and calls of the container runtime.
package agent

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/cri/critest"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/bench/fixture"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	nodeName  = "node-1"
	container = "server"
	// maxPods is the default limit of the kubelet.
	maxPods = 110
	// listMethod is the method of the runtime that lists all containers.
	listMethod = "ListContainers"
)

// Measures returns the measure.
func Measures() []harness.Measure {
	return []harness.Measure{{
		Name: "agent/resources", Rows: []string{rowMemory, rowNetwork, rowTCP, rowHTTP, rowExec, rowCalls, rowExecCall, rowFast}, Run: run,
	}}
}

// planned is one probe that every pod has.
type planned struct {
	handler probing.Handler
	// period is in seconds. If milliseconds is not zero, it is the period.
	period, milliseconds int32
}

// perSecond returns how often the probe runs.
func (p planned) perSecond() float64 {
	if p.milliseconds > 0 {
		return 1000 / float64(p.milliseconds)
	}
	return 1 / float64(p.period)
}

// fast is the probe that runs as often as is possible.
func fast() planned { return planned{handler: probing.HandlerTCP, period: 1, milliseconds: 100} }

// probes returns the probes of every pod.
func probes() []planned {
	return []planned{{handler: probing.HandlerTCP, period: 1}, {handler: probing.HandlerHTTP, period: 5}, {handler: probing.HandlerExec, period: 10}}
}

// node is an agent with a container runtime and pods in this process.
type node struct {
	*harness.Bench
	server *harness.Server
	agent  *harness.Program
	probed *fixture.Probed
	// runtime is that of the pods, and floor another one for the calls of floors.
	runtime, floor *critest.Runtime
	pods           int
	period, settle time.Duration
}

func run(b *harness.Bench) harness.Output {
	n := &node{
		Bench: b, server: b.Server(), pods: harness.Pick(b, maxPods, 30), period: harness.Pick(b, 30*time.Second, 2*time.Second),
		// This includes the first run of each probe, and the report and the events of its state.
		settle:  harness.Pick(b, 15*time.Second, time.Second),
		runtime: critest.New(b.T, critest.Streamed), floor: critest.New(b.T, critest.Streamed),
	}
	n.probed = fixture.NewProbed(b, n.pods, nil)
	for pod := range n.pods {
		n.runtime.Run(n.runtime.Create(identity.ContainerKey{PodUID: types.UID(podUID(pod)), Name: container}, 0), time.Now().Add(-time.Hour))
	}
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	b.Must(n.server.Client.Create(b.Context(), object))
	b.Must(n.server.Client.Create(b.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		Name: nodeName, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: nodeName, UID: object.UID}},
	}}))
	n.agent = n.server.Agent(nodeName, n.runtime.Socket())
	return measure(n.period, n.pods, n.under).output()
}

func podUID(pod int) string { return fmt.Sprintf("9a3c5f3e-7a1d-4c1b-8c6e-%012d", pod) }

// plan returns the plan of a node whose pods have the given probes.
func (n *node) plan(probes ...planned) (spec v1alpha1.NodePodProbeSpec) {
	for i := 0; i < n.pods && len(probes) > 0; i++ {
		pod := v1alpha1.PodProbe{
			Namespace: fixture.Namespace, Name: fmt.Sprintf("game-server-%04d", i), UID: podUID(i), IP: fixture.ProbedIP(i),
		}
		for _, p := range probes {
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{
				Name: "game-server#" + string(p.handler), ContainerName: container,
				Probe: v1alpha1.ContainerProbeSpec{PeriodMilliseconds: p.milliseconds, Probe: corev1.Probe{
					ProbeHandler: n.handler(p.handler), PeriodSeconds: p.period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
				}},
			})
		}
		spec.PodProbes = append(spec.PodProbes, pod)
	}
	return spec
}

func (n *node) handler(handler probing.Handler) corev1.ProbeHandler {
	port := intstr.FromInt(n.probed.Port)
	switch handler {
	case probing.HandlerExec:
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{command}}}
	case probing.HandlerTCP:
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	default:
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: port, Scheme: corev1.URISchemeHTTP}}
	}
}

// under measures the agent under a plan with the probes, and their floors at the same time.
func (n *node) under(probes ...planned) load {
	n.Helper()
	for i := range probes {
		// A short interval has runs of each probe.
		probes[i].period = harness.Pick(n.Bench, probes[i].period, 1)
	}
	current := &v1alpha1.NodePodProbe{}
	n.Must(n.server.Client.Get(n.Context(), client.ObjectKey{Name: nodeName}, current))
	before := current.DeepCopy()
	current.Spec = n.plan(probes...)
	n.Must(n.server.Client.Patch(n.Context(), current, client.MergeFrom(before)))
	n.Until("the agent runs the plan", time.Second, func(ctx context.Context) (bool, error) {
		planned, err := n.agent.Total(ctx, "seamark_agent_planned_probes")
		return err == nil && planned == float64(n.pods*len(probes)), nil
	})
	n.Idle(n.settle)

	var group errgroup.Group
	floors := make([]floor, len(probes))
	for i, p := range probes {
		group.Go(func() (err error) {
			floors[i], err = n.floorOf(p)
			return err
		})
	}
	first := n.read()
	n.Idle(n.period)
	l := n.read().since(first)
	n.Must(group.Wait())
	for i, p := range probes {
		if l.runs[p.handler] == 0 {
			n.Fatalf("the agent has run no probe with the handler %s in %s", p.handler, n.period)
		}
		l.floors[p.handler] = floors[i].CPU / time.Duration(max(floors[i].Done, 1))
	}
	n.Logf("%.2f s of processor time, runs %v, %.0f failed", l.cpu.Seconds(), l.runs, l.failed)
	return l
}

// floorOf measures the floor of a probe, in a process of its own.
func (n *node) floorOf(p planned) (floor, error) {
	target := fmt.Sprintf("%s:%d", fixture.ProbedIP(0), n.probed.Port)
	if p.handler == probing.HandlerExec {
		target = n.floor.Socket()
	}
	return harness.Answer[floor](n.Self(FloorArgument, "--kind="+string(p.handler), "--target="+target,
		fmt.Sprintf("--rate=%g", float64(n.pods)*p.perSecond()), "--for="+n.period.String()))
}

// read reads what the agent has done since its start.
func (n *node) read() load {
	n.Helper()
	families, err := n.agent.Families(n.Context())
	n.Must(err)
	usage := n.agent.Usage()
	l := newLoad()
	l.usage, l.cpu = usage, usage.CPU
	l.heap, l.goroutines = families["go_memstats_heap_inuse_bytes"].GetMetric()[0].GetGauge().GetValue(), families["go_goroutines"].GetMetric()[0].GetGauge().GetValue()
	for _, metric := range families["seamark_agent_probes_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		runs := metric.GetCounter().GetValue()
		l.runs[probing.Handler(labels["handler"])] += runs
		if labels["result"] != "success" {
			l.failed += runs
		}
	}
	for method, calls := range n.runtime.Calls() {
		// The agent lists all containers once per minute, whatever it probes.
		if method != listMethod {
			l.calls += float64(calls)
		}
	}
	return l
}
