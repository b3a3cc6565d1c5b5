// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker runs the probes of a plan. The loop, one goroutine, owns the evaluators
// and the queue of due probes. Each run of a probe has its own goroutine. Nothing is shared
// or locked, an idle probe needs no goroutine and no timer, and a slow probe delays only
// itself.
//
// A probe that is due waits in a pace.Pacer while its pod or the node exceeds a rate.
//
// A probe has at most one run in flight. If the container, handler, address or timeout of
// the probe changes, the run is cancelled and its result is ignored.
package worker

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/inbox"
)

// drainTimeout is how long Run waits after its cancellation for probers that ignore their
// context.
const drainTimeout = 2 * time.Second

// Sink receives the state changes of the probes. The loop calls it, so it must not block.
// All calls come from one goroutine, in the order in which the changes happened.
type Sink interface {
	// ProbeChanged receives the newest state of a probe: when it enters the plan, after
	// each outcome, and after each change of its container or its handler.
	ProbeChanged(change Change)
	// ProbeGone receives a probe that has left the plan.
	ProbeGone(key identity.Key)
}

// Change is the newest state of a probe.
type Change struct {
	// Key identifies the probe.
	Key identity.Key
	// Pod is the name of its pod.
	Pod types.NamespacedName
	// State is its state now.
	State thresholds.State
	// Transition is the transition that led to State; nil if the state did not change.
	Transition *thresholds.Transition
}

// Task is one probe that the worker runs.
type Task struct {
	// Key identifies the probe; it is unique within a plan.
	Key identity.Key
	// Pod is the name of the probe's pod.
	Pod types.NamespacedName
	// Plan is the planned value that distinguishes the probe from one of an earlier marker with
	// the same name. See v1alpha1.ContainerProbe.
	Plan string
	// RuntimeUID is the UID by which the runtime knows the pod, if it is not that of the key: the
	// planned pod is the mirror pod of a static pod.
	RuntimeUID types.UID
	// Policy is how the probe is timed and evaluated.
	Policy thresholds.Policy
	// Handler is what Target was parsed from. If it differs between two plans, the
	// handler has changed.
	Handler corev1.ProbeHandler
	// PodIP is the address that Target was parsed with.
	PodIP string
	// Target is what to run. Its ContainerID is filled in for each run. A task without a
	// handler does not run: its state follows the container alone.
	Target probing.Target
	// Startup is the startup probe of the container, or nil. After each start of the container, it
	// must succeed once before the probe runs.
	Startup *Startup
	// Restored is the state to start from. It is used only if the previous plan lacks
	// the probe.
	Restored thresholds.State
}

// container returns the key of the probed container in the runtime.
func (t *Task) container() identity.ContainerKey {
	return identity.ContainerKey{PodUID: cmp.Or(t.RuntimeUID, t.Key.PodUID), Name: t.Key.Name}
}

// Run is one finished run of a probe.
type Run struct {
	// Key identifies the probe.
	Key identity.Key
	// Pod is the name of its pod.
	Pod types.NamespacedName
	// Handler is the kind of the probe.
	Handler probing.Handler
	// Startup is whether the startup probe of the container ran, for which the probe waits.
	Startup bool
	// RateLimited is the rate that the run waited for, if it began a period or more after it was due.
	RateLimited pace.Limit
	// Duration is how long it took, including the wait for a free slot.
	Duration time.Duration
	// Outcome is the result if Err is nil.
	Outcome probing.Outcome
	// Streak is how many equal outcomes there were in a row, including this one.
	Streak int
	// Err is why the result is unknown.
	Err error
}

// Options are what a Worker needs. Fields are required unless their comment says otherwise.
type Options struct {
	// Prober runs the probes. It is called from many goroutines at once.
	Prober probing.Prober
	// Sink receives the states.
	Sink Sink
	// Observe receives every run that was not cancelled. The loop calls it.
	Observe func(Run)
	// Phase returns the position of a probe's runs within its period, in [0, 1): PhaseOf.
	// If it is nil, the runs of each probe follow its first run.
	Phase func(identity.Key) float64
	// Limits are the rates of the probes. Probes that exceed them run later. The zero value has no
	// limit.
	Limits pace.Limits
	// Now returns the current time: time.Now.
	Now func() time.Time
}

// Worker runs the probes of a plan. Its methods except Run are safe for concurrent use,
// return immediately, and take effect in the order of the calls.
type Worker struct {
	options Options
	inbox   *inbox.Inbox
	loop    loop
}

// New returns a worker with an empty plan.
func New(options Options) *Worker {
	w := &Worker{options: options, inbox: inbox.New(options.Now)}
	w.loop = loop{
		options:    options,
		origin:     options.Now(),
		post:       w.inbox.Post,
		entries:    map[identity.Key]*entry{},
		members:    map[identity.ContainerKey]map[identity.Key]*entry{},
		containers: map[identity.ContainerKey]thresholds.ContainerRun{},
		unknown:    map[identity.ContainerKey]bool{},
		inFlight:   map[identity.Key]*flight{},
		pacer:      pace.New(options.Limits),
	}
	return w
}

// SetPlan replaces the plan. Probes that are also in the previous plan keep their states,
// and edits take effect immediately. Probes without a result start immediately; then, and
// with a restored result, they run in their phase. When the plan is in force and the sink has
// received all changes, the loop calls inForce.
func (w *Worker) SetPlan(tasks []Task, inForce func()) {
	w.inbox.Post(func(now time.Time) {
		w.loop.setPlan(now, tasks)
		inForce()
	})
}

// ContainerChanged sets the newest run of a container.
func (w *Worker) ContainerChanged(id identity.ContainerKey, c thresholds.ContainerRun) {
	w.inbox.Post(func(now time.Time) { w.loop.containerChanged(now, id, c) })
}

// ContainerGone removes a container that the runtime no longer has.
func (w *Worker) ContainerGone(id identity.ContainerKey) {
	w.inbox.Post(func(now time.Time) { w.loop.containerGone(now, id) })
}

// ContainerUnknown pauses the probes of a container that the runtime cannot describe. Their
// states do not change until ContainerChanged or ContainerGone is called for it.
func (w *Worker) ContainerUnknown(id identity.ContainerKey) {
	w.inbox.Post(func(time.Time) { w.loop.containerUnknown(id) })
}

// ContainersSynced reports that all existing containers are known, or known to be unknown. Before this
// call, and after ContainersStale, the worker runs no probes and no container counts as stopped or gone.
func (w *Worker) ContainersSynced() {
	w.inbox.Post(func(now time.Time) { w.loop.sync(now) })
}

// ContainersStale reports that what is known of containers is outdated: no plan needs them. A later plan waits for
// ContainersSynced, as the first one does.
func (w *Worker) ContainersStale() {
	w.inbox.Post(func(time.Time) { w.loop.synced = false })
}

// Run runs the probes until ctx ends. Then it cancels the runs in flight and waits for
// them. It must be called only once.
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
