// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/manifest/environ"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// declaredProbe is one of the kubelet's probes in the spec of a container.
type declaredProbe struct {
	kind ProbeType
	spec *corev1.Probe
}

// kubeletProbes returns the kubelet's probes that a container declares.
func kubeletProbes(c *corev1.Container) []declaredProbe {
	var declared []declaredProbe
	for _, p := range []declaredProbe{
		{ProbeStartup, c.StartupProbe}, {ProbeLiveness, c.LivenessProbe}, {ProbeReadiness, c.ReadinessProbe},
	} {
		if p.spec != nil {
			declared = append(declared, p)
		}
	}
	return declared
}

// handlerOf returns the name of a probe's handler. It is empty if the probe does not have
// exactly one, which manifest rejects.
func handlerOf(spec *corev1.Probe) string {
	handler, _ := probe.HandlerOf(&spec.ProbeHandler)
	return string(handler)
}

// plannedProbe describes a probe that the worker runs.
type plannedProbe struct {
	pod *pod
	// kind is the type of the probe. id is the run of the container that one of the
	// kubelet's probes belongs to.
	kind ProbeType
	id   string
	// declared is the spec of one of the kubelet's probes.
	declared *corev1.Probe
	policy   streak.Policy
	handler  probe.Handler
}

// planner runs a plan. It calls applied when it does.
type planner interface {
	SetPlan(tasks []worker.Task, applied func())
}

// probes plans the probes of the pods, and keeps the state of each in its pod.
type probes struct {
	pods    *pods
	markers []*plan.Marker
	planner planner
	changes *changes

	// planned are the probes of the last plan.
	planned map[probeid.Key]plannedProbe
	// newest is the last plan of the markers. Its generation counts the plans.
	newest report.Plan
}

// replan plans the probes to run: those that the markers plan for this node, and the
// kubelet's probes of the running containers. It passes the markers' plan to applied when
// the worker runs it.
func (ps *probes) replan(applied func(report.Plan)) {
	objects := make([]*corev1.Pod, 0, len(ps.pods.list))
	for _, p := range ps.pods.list {
		objects = append(objects, p.object)
	}
	spec := plan.Node(objects, ps.markers, plan.KubernetesDefaults())
	if ps.newest.Generation == 0 || !equality.Semantic.DeepEqual(spec.PodProbes, ps.newest.Pods) {
		ps.newest = report.Plan{Generation: ps.newest.Generation + 1, Pods: spec.PodProbes}
	}
	newest := ps.newest

	ps.planned = map[probeid.Key]plannedProbe{}
	var tasks []worker.Task
	add := func(task worker.Task, planned plannedProbe) {
		planned.policy, planned.handler = task.Policy, task.Target.Handler
		if task.Target.HTTP != nil {
			// The user runs the process and may see what it answers.
			task.Target.HTTP.PublishBody = true
		}
		ps.planned[task.Key] = planned
		tasks = append(tasks, task)
	}
	ps.addMarkers(newest, add)
	for _, p := range ps.pods.list {
		addKubelet(p, add)
	}
	ps.planner.SetPlan(tasks, func() { applied(newest) })
}

// addMarkers adds the probes that the markers plan.
func (ps *probes) addMarkers(newest report.Plan, add func(worker.Task, plannedProbe)) {
	// The rules of the CRD, which manifest enforces, exclude problems.
	tasks, _ := worker.TasksOf(newest.Pods)
	for _, task := range tasks {
		if pod, _ := ps.pods.of(task.Key.ContainerKey); pod != nil && task.Target.Handler != "" {
			add(task, plannedProbe{pod: pod, kind: ProbeMarker})
		}
	}
}

// addKubelet adds the kubelet's probes of a pod that are active. The keys differ for each
// run of a container, so that late results of an earlier run are not used.
func addKubelet(p *pod, add func(worker.Task, plannedProbe)) {
	for _, c := range p.machine.Containers() {
		active := activeProbes(p.machine, c)
		for _, declared := range kubeletProbes(c.Spec) {
			state := p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]
			state.Active = active[declared.kind]
			if !state.Active {
				continue
			}
			key := probeid.Key{
				ContainerKey: probeid.ContainerKey{PodUID: p.object.UID, Name: c.Spec.Name},
				ID:           probeid.ID{Probe: string(declared.kind) + " " + c.ID},
			}
			task, err := kubeletTask(key, p.object, c.Spec, declared.spec)
			if err != nil {
				state.Active, state.Error = false, err.Error()
				continue
			}
			add(task, plannedProbe{pod: p, kind: declared.kind, id: c.ID, declared: declared.spec})
		}
	}
}

// activeProbes returns which of the kubelet's probes run. When the pod is being stopped,
// only the readiness probe does.
func activeProbes(machine *lifecycle.PodMachine, c *lifecycle.ContainerMachine) map[ProbeType]bool {
	startup, liveness, readiness := c.ActiveProbes()
	return map[ProbeType]bool{
		ProbeStartup:   startup && !machine.Stopped(),
		ProbeLiveness:  liveness && !machine.Stopped(),
		ProbeReadiness: readiness,
	}
}

// kubeletTask returns the task for one of the kubelet's probes.
// The rules are those for markers' probes.
func kubeletTask(key probeid.Key, pod *corev1.Pod, c *corev1.Container, declared *corev1.Probe) (worker.Task, error) {
	spec, problem := plan.Resolve(pod, c.Name, declared, plan.KubernetesDefaults())
	if problem.Reason != "" {
		return worker.Task{}, fmt.Errorf("%s %s", problem.Reason, problem.Port)
	}
	if spec.Exec != nil {
		spec.Exec.Command = environ.Static(spec.Exec.Command, c.Env)
	}
	return worker.NewTask(key, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, &spec, pod.Status.PodIP)
}
