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
	"github.com/seamark-dev/seamark/internal/local/environ"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
	"github.com/seamark-dev/seamark/internal/worker"
)

// declaredProbe is one of the kubelet's probes, as a container declares it.
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
// exactly one, which manifest refuses.
func handlerOf(spec *corev1.Probe) string {
	handler, _ := probe.HandlerOf(&spec.ProbeHandler)
	return string(handler)
}

// plannedProbe is what the loop knows of a probe that the worker runs.
type plannedProbe struct {
	pod *pod
	// kind is whose probe it is; id the start of the container that one of the kubelet's
	// is for.
	kind ProbeType
	id   string
	// declared is one of the kubelet's, as its container has it.
	declared *corev1.Probe
	policy   streak.Policy
	handler  probe.Handler
}

// replan works out what the worker is to run: the markers' plan of this node, and the
// kubelet's probes of the containers that run.
func (l *loop) replan(now time.Time) {
	l.replanAt = time.Time{}
	objects := make([]*corev1.Pod, 0, len(l.pods))
	for _, p := range l.pods {
		objects = append(objects, p.object)
	}
	spec := plan.Node(objects, l.markers, plan.KubernetesDefaults())
	if l.generation == 0 || !equality.Semantic.DeepEqual(spec.PodProbes, l.newest.Pods) {
		l.generation++
		l.newest = report.Plan{Generation: l.generation, Pods: spec.PodProbes}
	}
	newest := l.newest

	planned := map[probeid.Key]plannedProbe{}
	var tasks []worker.Task
	add := func(task worker.Task, about plannedProbe) {
		about.policy, about.handler = task.Policy, task.Target.Handler
		planned[task.Key] = about
		tasks = append(tasks, task)
	}
	l.addMarkers(newest, add)
	for _, p := range l.pods {
		l.addKubelet(now, p, add)
	}
	l.planned = planned
	l.worker.SetPlan(tasks, func() {
		l.mail.post(func(l *loop, now time.Time) {
			l.plan = newest
			sooner(&l.reportAt, now)
		})
	})
}

// addMarkers adds the probes of a markers' plan.
func (l *loop) addMarkers(p report.Plan, add func(worker.Task, plannedProbe)) {
	// The rules of the CRD, which manifest checks too, leave no problems.
	tasks, _ := worker.TasksOf(p.Pods)
	for _, task := range tasks {
		if pod, _ := l.podOf(task.Key.Container); pod != nil && task.Target.Handler != "" {
			add(task, plannedProbe{pod: pod, kind: ProbeMarker})
		}
	}
}

// addKubelet adds those of the kubelet's probes that are to be run now. Each start of a
// container has probes of its own, so that what is still on its way about the one before
// can't be taken for it.
func (l *loop) addKubelet(now time.Time, p *pod, add func(worker.Task, plannedProbe)) {
	for _, c := range p.machine.Containers() {
		active := activeProbes(p.machine, c)
		for _, declared := range kubeletProbes(c.Spec) {
			view := p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]
			view.Active = active[declared.kind]
			if !view.Active {
				continue
			}
			key := probeid.Key{
				Container: probeid.Container{PodUID: p.object.UID, Name: c.Spec.Name},
				ID:        probeid.ID{Probe: string(declared.kind) + " " + c.ID},
			}
			planned, err := kubeletProbeOf(key, p.object, c.Spec, declared.spec)
			if err != nil {
				view.Active, view.Error = false, err.Error()
				continue
			}
			add(planned, plannedProbe{pod: p, kind: declared.kind, id: c.ID, declared: declared.spec})
		}
	}
}

// activeProbes tells which of the kubelet's probes are run. Once the pod is stopped, only
// readiness is.
func activeProbes(machine *lifecycle.Pod, c *lifecycle.Container) map[ProbeType]bool {
	startup, liveness, readiness := c.Probed()
	return map[ProbeType]bool{
		ProbeStartup:   startup && !machine.Stopped(),
		ProbeLiveness:  liveness && !machine.Stopped(),
		ProbeReadiness: readiness,
	}
}

// kubeletProbeOf returns the task of one of the kubelet's probes, which follows the rules
// for the probes of markers.
func kubeletProbeOf(key probeid.Key, pod *corev1.Pod, c *corev1.Container, declared *corev1.Probe) (worker.Task, error) {
	spec, problem := plan.Resolve(pod, c.Name, declared, plan.KubernetesDefaults())
	if problem.Reason != "" {
		return worker.Task{}, fmt.Errorf("%s %s", problem.Reason, problem.Port)
	}
	if spec.Exec != nil {
		spec.Exec.Command = environ.Static(spec.Exec.Command, c.Env)
	}
	return worker.NewTask(key, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, &spec, pod.Status.PodIP)
}

// sink posts what the worker says to the loop.
type sink struct{ mail *mailbox }

var _ worker.Sink = sink{}

// ProbeChanged posts the newest state of a probe.
func (s sink) ProbeChanged(change worker.Change) {
	s.mail.post(func(l *loop, now time.Time) { l.probeChanged(now, change.Key, change.State, change.Transition) })
}

// ProbeGone posts that a probe has left the plan.
func (s sink) ProbeGone(key probeid.Key) {
	s.mail.post(func(l *loop, _ time.Time) { l.probeGone(key) })
}

// probeChanged takes in the state of a probe.
func (l *loop) probeChanged(now time.Time, key probeid.Key, state streak.State, transition *streak.Transition) {
	about, known := l.planned[key]
	view := l.viewOf(key, about)
	if !known || view == nil {
		return
	}
	if about.kind == ProbeMarker {
		l.states[key] = state
		sooner(&l.reportAt, now)
	}
	view.State, view.Message, view.LastTransition = state.State, state.Message, state.LastTransition
	if transition != nil || view.Ran {
		l.tellProbe(now, about.pod, view, transition != nil)
	}
	if transition != nil && about.kind != ProbeMarker {
		l.judged(now, key, about, transition.To)
	}
}

// judged has the container follow what one of the kubelet's probes says.
func (l *loop) judged(now time.Time, key probeid.Key, about plannedProbe, to v1alpha1.ProbeState) {
	p, name := about.pod, key.Name
	switch {
	case about.kind == ProbeReadiness:
		p.machine.ReadinessChanged(name, about.id, to == v1alpha1.ProbeSucceeded)
		p.dirty = true
	case about.kind == ProbeStartup && to == v1alpha1.ProbeSucceeded:
		l.act(now, p, p.machine.StartupSucceeded(now, name, about.id))
	case to == v1alpha1.ProbeFailed:
		word := "liveness"
		if about.kind == ProbeStartup {
			word = "startup"
		}
		l.act(now, p, p.machine.ProbeFailed(now, name, about.id, word, about.declared))
	}
}

// probeGone takes in that a probe is no longer run.
func (l *loop) probeGone(key probeid.Key) {
	if _, again := l.planned[key]; again {
		return
	}
	delete(l.states, key)
	if p, _ := l.podOf(key.Container); p != nil {
		delete(p.marked, key)
	}
}

// ran takes in a finished run. What it changes in the state comes after it, and is told
// with it.
func (l *loop) ran(now time.Time, run worker.Run) {
	about, known := l.planned[run.Key]
	view := l.viewOf(run.Key, about)
	if !known || view == nil {
		return
	}
	view.Runs++
	view.LastProbe = now
	if run.Err != nil {
		view.Error = run.Err.Error()
		view.Ran = true
		l.tellProbe(now, about.pod, view, false)
		l.unhealthy(now, run, about, "errored and resulted in unknown state", view.Error)
		return
	}
	view.Ran, view.Error = true, ""
	view.Success, view.Output, view.Streak = run.Outcome.Success, run.Outcome.Message, run.Streak
	view.Threshold = about.policy.FailureThreshold
	if view.Success {
		view.Threshold = about.policy.SuccessThreshold
		return
	}
	l.unhealthy(now, run, about, "failed", run.Outcome.Message)
}

// unhealthy tells of a run of one of the kubelet's probes that did not succeed.
func (l *loop) unhealthy(now time.Time, run worker.Run, about plannedProbe, what, why string) {
	if about.kind != ProbeMarker {
		l.tell(about.pod.event(now, run.Key.Name, corev1.EventTypeWarning, lifecycle.ReasonUnhealthy,
			fmt.Sprintf("%s probe %s: %s", about.kind, what, why)))
	}
}

// viewOf returns what is shown of a probe; nil where its container has been started anew.
func (l *loop) viewOf(key probeid.Key, about plannedProbe) *Probe {
	p, c := l.podOf(key.Container)
	if p == nil || about.pod == nil {
		return nil
	}
	if about.kind != ProbeMarker {
		if c == nil || c.ID != about.id {
			return nil
		}
		return p.kubelet[kubeletProbe{c.Spec.Name, about.kind}]
	}
	view := p.marked[key]
	if view == nil {
		view = &Probe{
			Type: ProbeMarker, Marker: key.Marker, Name: key.Probe, Container: key.Name,
			Handler: string(about.handler), Active: true,
		}
		p.marked[key] = view
	}
	return view
}

// tellProbe tells of a run, a transition, or both.
func (l *loop) tellProbe(now time.Time, p *pod, view *Probe, transition bool) {
	change := p.change(now, KindProbe, view.Container)
	shown := *view
	shown.Transition = transition
	view.Ran = false
	change.Probe = &shown
	l.tell(change)
}

// restartProbes forgets what was known of the container's start before. The states of the
// markers' probes are the worker's to forget.
func (p *pod) restartProbes(c *lifecycle.Container) {
	for _, declared := range kubeletProbes(c.Spec) {
		view := p.kubelet[kubeletProbe{c.Spec.Name, declared.kind}]
		*view = Probe{Type: view.Type, Container: view.Container, Handler: view.Handler}
	}
	for key, view := range p.marked {
		if key.Name == c.Spec.Name {
			view.Runs, view.Streak, view.Threshold = 0, 0, 0
		}
	}
}
