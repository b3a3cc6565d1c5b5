// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
	handler, _ := probing.HandlerOf(&spec.ProbeHandler)
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
	policy   thresholds.Policy
	handler  probing.Handler
	// command is that of an exec probe.
	command []string
}

// replan plans the probes to run: those that the markers plan for this node, and the
// kubelet's probes of the running containers.
func (l *loop) replan() {
	objects := make([]*corev1.Pod, 0, len(l.pods))
	for _, p := range l.pods {
		objects = append(objects, p.object)
	}
	spec := plan.Node(objects, l.markers, plan.KubernetesDefaults())
	if l.newest.Generation == 0 || !equality.Semantic.DeepEqual(spec.PodProbes, l.newest.Pods) {
		l.newest = report.Plan{Generation: l.newest.Generation + 1, Pods: spec.PodProbes}
	}
	newest := l.newest

	l.planned = map[identity.Key]plannedProbe{}
	var tasks []worker.Task
	add := func(task worker.Task, planned plannedProbe) {
		planned.policy, planned.handler = task.Policy, task.Target.Handler
		if task.Target.Exec != nil {
			planned.command = task.Target.Exec.Command
		}
		if task.Target.HTTP != nil {
			// The user runs the process and may see what it answers.
			task.Target.HTTP.PublishBody = true
		}
		l.planned[task.Key] = planned
		tasks = append(tasks, task)
	}
	// The rules of the CRD, which manifest enforces, exclude problems.
	marked, _ := worker.TasksOf(newest.Pods)
	for _, task := range marked {
		if p := l.pod(task.Key.PodUID); p != nil && task.Target.Handler != "" {
			add(task, plannedProbe{pod: p, kind: ProbeMarker})
		}
	}
	for _, p := range l.pods {
		addKubelet(p, add)
	}
	l.worker.SetPlan(tasks, func() {
		l.inbox.Post(func(now time.Time) {
			l.applied, l.replanned = newest, true
			l.reporting.schedule(now)
		})
	})
}

// addKubelet adds the kubelet's probes of a pod that are active. The keys differ for each
// run of a container, so that late results of an earlier run are not used.
func addKubelet(p *pod, add func(worker.Task, plannedProbe)) {
	for _, c := range p.machine.Containers() {
		startup, liveness, readiness := p.machine.ActiveProbes(c)
		active := map[ProbeType]bool{ProbeStartup: startup, ProbeLiveness: liveness, ProbeReadiness: readiness}
		for _, declared := range kubeletProbes(c.Spec) {
			state := p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]
			state.Active = active[declared.kind]
			if !state.Active {
				continue
			}
			key := identity.Key{
				ContainerKey: identity.ContainerKey{PodUID: p.object.UID, Name: c.Spec.Name},
				ID:           identity.ID{Probe: string(declared.kind) + " " + c.ID},
			}
			task, err := kubeletTask(key, p, c.Spec, declared.spec)
			if err != nil {
				state.Active, state.Error = false, err.Error()
				continue
			}
			add(task, plannedProbe{pod: p, kind: declared.kind, id: c.ID, declared: declared.spec})
		}
	}
}

// kubeletTask returns the task for one of the kubelet's probes.
// The rules are those for markers' probes.
func kubeletTask(key identity.Key, p *pod, c *corev1.Container, declared *corev1.Probe) (worker.Task, error) {
	spec, problem := plan.Resolve(p.object, c.Name, declared, plan.KubernetesDefaults())
	if problem.Reason != "" {
		return worker.Task{}, fmt.Errorf("%s %s", problem.Reason, problem.Port)
	}
	if spec.Exec != nil {
		spec.Exec.Command = environ.Static(spec.Exec.Command, c, p.volumes)
	}
	name := types.NamespacedName{Namespace: p.object.Namespace, Name: p.object.Name}
	return worker.NewTask(key, name, &v1alpha1.ContainerProbeSpec{Probe: spec}, p.object.Status.PodIP)
}
