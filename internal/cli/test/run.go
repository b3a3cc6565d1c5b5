// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// The results.
const (
	succeeded   = "Succeeded"
	failed      = "Failed"
	resultError = "Error"
	notRun      = "NotRun"
	// undecided is the result of repeated runs that reached no threshold.
	undecided = "Undecided"
)

// attempt is one probe of one pod. Its result is complete after the run, or before if the probe
// cannot run.
type attempt struct {
	Item
	pod     dryrun.Pod
	planned plan.PlannedProbe
	// ran is whether the probe ran. err is why it has no result.
	ran bool
	err error
}

func newAttempt(pod dryrun.Pod, planned plan.PlannedProbe) *attempt {
	handler, _ := probing.HandlerOf(&planned.Plan.Probe.ProbeHandler)
	return &attempt{pod: pod, planned: planned, Item: Item{
		Namespace: pod.Object.Namespace, Pod: pod.Object.Name, Node: pod.Object.Spec.NodeName, Marker: planned.ID.Marker,
		Probe: planned.ID.Probe, Container: planned.Plan.ContainerName, Handler: string(handler),
	}}
}

// refused returns the result of a pod or a probe that cannot be probed.
func refused(pod *corev1.Pod, marker, message string) *attempt {
	return &attempt{Item: Item{
		Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Marker: marker, Result: notRun, Message: message,
	}}
}

// runner runs probes.
type runner struct {
	transport transport
	now       func() time.Time
	parallel  int
}

// run runs all probes that have no result.
func (r *runner) run(ctx context.Context, attempts []*attempt) {
	var group errgroup.Group
	group.SetLimit(r.parallel)
	for _, a := range attempts {
		if a.Result == "" {
			group.Go(func() error { r.probe(ctx, a); return nil })
		}
	}
	// The functions return no errors.
	_ = group.Wait()
}

func (r *runner) probe(ctx context.Context, a *attempt) {
	task, run, ready := a.prepare(r.now())
	if !ready {
		return
	}
	start := r.now()
	task.Target.Started = func() { start = r.now() }
	outcome, err := r.transport.Prober(remote.Container{Pod: task.Pod, Name: task.Key.Name}).Probe(ctx, task.Target)
	if a.Seconds = r.now().Sub(start).Seconds(); err != nil {
		a.fail(err)
		return
	}
	a.ran, a.TimedOut = true, outcome.TimedOut
	a.finish(dryrun.Once(r.now(), run, outcome))
}

// prepare returns the probe as an agent runs it, and the run of its container. It returns false if
// the probe cannot run or needs no run, which sets the result.
func (a *attempt) prepare(now time.Time) (worker.Task, thresholds.ContainerRun, bool) {
	run, has := dryrun.RunOf(a.pod.Object, a.planned.Plan.ContainerName)
	switch {
	case !has:
		a.Result, a.Message = notRun, "the container has not started: it is probed after its start"
		return worker.Task{}, run, false
	case !run.Running:
		a.finish(dryrun.Once(now, run, probing.Outcome{}))
		return worker.Task{}, run, false
	}
	task, err := a.task()
	if err != nil || task.Target.Handler == "" {
		a.Result, a.Message = notRun, "the pod has no address yet"
		if err != nil {
			a.Message = err.Error()
		}
		return task, run, false
	}
	return task, run, true
}

// task returns the probe as an agent runs it.
func (a *attempt) task() (worker.Task, error) {
	object := a.pod.Object
	key := identity.Key{ContainerKey: identity.ContainerKey{PodUID: object.UID, Name: a.planned.Plan.ContainerName}, ID: a.planned.ID}
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	task, err := worker.NewTask(key, name, &a.planned.Plan.Probe, object.Status.PodIP)
	if err != nil {
		return task, fmt.Errorf("the probe is invalid: %w", err)
	}
	if task.Target.HTTP != nil {
		task.Target.HTTP.PublishBody = a.planned.Plan.PublishBody
	}
	return task, nil
}

// fail sets the result of a probe that has none.
func (a *attempt) fail(err error) {
	a.err, a.Result, a.Message = err, resultError, message(err)
	var denied *remote.DeniedError
	if errors.As(err, &denied) {
		a.Result, a.Seconds = notRun, 0
	}
}

// message says why a run has no result.
func message(err error) string {
	var denied *remote.DeniedError
	if errors.As(err, &denied) {
		return fmt.Sprintf("no permission to create %s", denied.Missing.Resource)
	}
	return err.Error()
}

// finish sets the result from the state.
func (a *attempt) finish(state thresholds.State) {
	a.Result, a.Message = string(state.State), state.Message
	a.Effect = a.pod.Effect(a.planned, state)
	policy := thresholds.PlannedPolicy(&a.planned.Plan.Probe)
	a.Threshold = policy.FailureThreshold
	if state.State == v1alpha1.ProbeSucceeded {
		a.Threshold = policy.SuccessThreshold
	}
	a.note()
}

// note adds what the result alone does not show.
func (a *attempt) note() {
	if a.Threshold > 1 && a.Series == nil {
		a.Notes = append(a.Notes, fmt.Sprintf("takes effect after %d equal results in a row", a.Threshold))
	}
	if a.TimedOut && a.Handler == string(probing.HandlerExec) {
		a.Notes = append(a.Notes, "the command may still run: an agent ends it, the API server does not")
	}
	if network := a.Handler != string(probing.HandlerExec); network && a.ran && a.pod.Object.Spec.HostNetwork {
		a.Notes = append(a.Notes, "connected to localhost on the node: agents connect to the address of the node")
	} else if network && a.ran {
		a.Notes = append(a.Notes, fmt.Sprintf("connected to localhost in the pod: agents connect to %s from the node", a.pod.Object.Status.PodIP))
	}
	for _, lost := range a.Lost {
		a.Notes = append(a.Notes, fmt.Sprintf("%s %s belongs to probe %s", lost.Kind, lost.Name, lost.Owner))
	}
}
