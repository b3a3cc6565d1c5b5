// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker runs the probes of a plan. One goroutine, the loop, owns every judge and
// the queue of what is due; each run of a probe gets a goroutine of its own for as long as
// it takes. So nothing here is shared or locked, an idle probe costs no goroutine and no
// timer, and a slow probe holds up nobody but itself.
//
// A probe has at most one run in flight. A run that began before its container, its
// handler, its address or its timeout changed is cancelled, and whatever it says counts
// for nothing.
package worker

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/inbox"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/streak"
)

// drainTimeout bounds how long Run waits, once it is cancelled, for probers that do not
// heed their context.
const drainTimeout = 2 * time.Second

// Sink receives what becomes of the probes. The loop calls it, so it must not block. All
// calls come from one goroutine, in the order in which the changes happened.
type Sink interface {
	// ProbeChanged receives the newest state of a probe: when it enters the plan, after
	// each outcome, and after each change of its container or its handler.
	ProbeChanged(change Change)
	// ProbeGone receives a probe that has left the plan.
	ProbeGone(key probeid.Key)
}

// Change is the newest state of a probe.
type Change struct {
	// Key identifies the probe.
	Key probeid.Key
	// Pod is the name of its pod.
	Pod types.NamespacedName
	// State is its state now.
	State streak.State
	// Transition is how State came about; nil if the state did not change.
	Transition *streak.Transition
}

// Task is one probe that the worker runs.
type Task struct {
	// Key identifies the probe; it is unique within a plan.
	Key probeid.Key
	// Pod is the name of the probe's pod.
	Pod types.NamespacedName
	// Policy is how the probe is timed and evaluated.
	Policy streak.Policy
	// Handler is what Target was parsed from. If it differs between two plans, the
	// handler has changed.
	Handler corev1.ProbeHandler
	// PodIP is the address that Target was parsed with.
	PodIP string
	// Target is what to run. Its ContainerID is filled in for each run. A task without a
	// handler does not run: its state follows the container alone.
	Target probe.Target
	// Restored is the state to start from. It is used only if the previous plan lacks
	// the probe.
	Restored streak.State
}

// Run is one finished run of a probe.
type Run struct {
	// Key identifies the probe.
	Key probeid.Key
	// Pod is the name of its pod.
	Pod types.NamespacedName
	// Handler is the kind of the probe.
	Handler probe.Handler
	// Duration is how long it took, the wait for a free place included.
	Duration time.Duration
	// Outcome is what it said, where Err is nil.
	Outcome probe.Outcome
	// Streak is how many outcomes in a row, this one counted, have said the same.
	Streak int
	// Err says why nothing could be told.
	Err error
}

// Options are what a Worker needs. All fields are required.
type Options struct {
	// Prober runs the probes. It is called from many goroutines at once.
	Prober probe.Prober
	// Sink takes in the states.
	Sink Sink
	// Observe is told of every run that was not cancelled, from the loop.
	Observe func(Run)
	// Rand returns a number in [0,1), by which the first runs of the first plan are
	// spread over a period.
	Rand func() float64
}

// Worker follows a plan. Its methods other than Run are safe for concurrent use, return
// at once, and take effect in the order of their calls.
type Worker struct {
	options Options
	inbox   *inbox.Inbox
	loop    loop
}

// New returns a worker with an empty plan.
func New(options Options) *Worker {
	w := &Worker{options: options, inbox: inbox.New()}
	w.loop = loop{
		options:    options,
		post:       w.inbox.Post,
		entries:    map[probeid.Key]*entry{},
		members:    map[probeid.ContainerKey]map[probeid.Key]*entry{},
		containers: map[probeid.ContainerKey]streak.ContainerRun{},
		inFlight:   map[probeid.Key]*flight{},
	}
	return w
}

// SetPlan replaces the plan. Probes that it shares with the one before keep their states;
// edits are in force at once. The probes of the first plan start spread over a period,
// those that later plans add start at once. The loop calls inForce when the plan stands
// and the sink has been told of all that it changes.
func (w *Worker) SetPlan(tasks []Task, inForce func()) {
	w.inbox.Post(func(now time.Time) {
		w.loop.setPlan(now, tasks)
		inForce()
	})
}

// ContainerChanged tells what the runtime says of a container.
func (w *Worker) ContainerChanged(id probeid.ContainerKey, c streak.ContainerRun) {
	w.inbox.Post(func(now time.Time) { w.loop.containerChanged(now, id, c) })
}

// ContainerGone tells that the runtime no longer has a container.
func (w *Worker) ContainerGone(id probeid.ContainerKey) {
	w.inbox.Post(func(now time.Time) { w.loop.containerGone(now, id) })
}

// ContainersSynced tells that every container there is has been told of. Nothing is
// probed, and no container held to be gone or stopped, before that.
func (w *Worker) ContainersSynced() {
	w.inbox.Post(func(now time.Time) { w.loop.sync(now) })
}

// Run runs the probes until ctx ends, and then cancels and awaits those in flight. It is
// called once.
func (w *Worker) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		w.inbox.Deliver()
		w.loop.startDue(ctx)
		timer.Reset(w.loop.untilDue())
		select {
		case <-ctx.Done():
		case <-w.inbox.Wake():
		case <-timer.C:
		}
	}
	timer.Reset(drainTimeout)
	for w.inbox.Deliver(); len(w.loop.inFlight) > 0; w.inbox.Deliver() {
		select {
		case <-w.inbox.Wake():
		case <-timer.C:
			return
		}
	}
}
