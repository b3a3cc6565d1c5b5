// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/address"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/internal/program/earliest"
)

// loop is one run: it handles the events of the inbox, and does what is due. Only its goroutine
// uses the state of the run.
type loop struct {
	*Runner
	keeper    *process.Keeper
	worker    *worker.Worker
	commands  *exec.Prober
	execs     *execs
	listeners *listeners
	// base is the part of the environment that all containers have.
	base map[string]string
	// lines has a token for each line of output that waits for the loop.
	lines chan struct{}
	// background runs a function in a goroutine until the run has ended.
	background func(func(ctx context.Context))

	// changes are those of the current turn.
	changes []Change
	// plan is when the probes must be planned again, reporting when their states must be reported.
	plan, reporting due
	// planned are the probes of the last plan.
	planned map[identity.Key]plannedProbe
	// newest is the last plan of the markers, applied the one that the worker runs. Its
	// generation counts the plans.
	newest, applied report.Plan
	// replanned reports whether the plan has changed since the pods were marked.
	replanned bool
	// states are those of the markers' probes, slices the reports that an API server would store.
	states report.States
	record report.Record
	slices map[int]*seamarkv1alpha1.ProbeReport
	// announcer decides on the events for errors.
	announcer *report.Announcer
	// stopping reports whether the pods are being stopped, killed that no process may start any
	// more.
	stopping, killed bool
}

// newLoop gives the pods their addresses and volumes, checks that their ports are free, and
// assembles the run.
func newLoop(r *Runner, keeper *process.Keeper, lease *address.Lease) (*loop, error) {
	l := &loop{
		Runner: r, keeper: keeper, execs: &execs{keeper: keeper}, base: baseEnvironment(), lines: make(chan struct{}, maxPendingLines),
		states: report.States{}, slices: map[int]*seamarkv1alpha1.ProbeReport{}, announcer: report.NewAnnouncer(time.Time{}, report.Record{}),
	}
	if err := l.admit(lease); err != nil {
		return nil, err
	}
	l.listeners = newListeners(keeper, r.pods)
	if err := l.listeners.check(r.pods, r.markers); err != nil {
		return nil, err
	}
	l.commands = exec.New(l.execs, configv1alpha1.DefaultExecConcurrency, nil)
	l.worker = worker.New(worker.Options{
		Prober:  newProbers(l.commands, l.execs, l.listeners, r.options.Version),
		Sink:    sink{l},
		Observe: func(run worker.Run) { r.inbox.Post(func(now time.Time) { l.ran(now, run) }) },
		// A local run has too few probes to spread them over a period.
		Now: time.Now,
	})
	return l, nil
}

// pod returns the pod with a UID. It is nil if there is none.
func (l *loop) pod(uid types.UID) *pod {
	if i := slices.IndexFunc(l.pods, func(p *pod) bool { return p.object.UID == uid }); i >= 0 {
		return l.pods[i]
	}
	return nil
}

// admit gives the pods their addresses and volumes.
func (l *loop) admit(lease *address.Lease) error {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.pods {
		ip := loopback
		if i < len(lease.Addresses) {
			ip = lease.Addresses[i].String()
		}
		p.admit(now, ip)
		if err := makeVolumes(p, l.keeper.Folder(), &l.options.Objects); err != nil {
			return err
		}
	}
	return nil
}

// run runs the pods until ctx ends or Kill is called, and all have stopped.
func (l *loop) run(ctx context.Context) error {
	// The goroutines of the run must outlive ctx, because the pods are stopped after it.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
	}()
	running.Go(func() {
		defer l.commands.Close()
		l.worker.Run(inner)
	})
	l.background = func(f func(ctx context.Context)) { running.Go(func() { f(inner) }) }
	l.worker.ContainersSynced()
	l.inbox.Post(l.begin)

	timer := time.NewTimer(0)
	defer timer.Stop()
	done, lost := ctx.Done(), l.keeper.Lost()
	var err error
	for !l.turn() {
		timer.Reset(l.untilDue())
		select {
		case <-done:
			done = nil
			l.inbox.Post(l.stop)
		case <-lost:
			lost, err = nil, errors.New("the reaper exited, so the processes were killed")
			l.Kill()
		case <-l.inbox.Wake():
		case <-timer.C:
		}
	}
	return err
}

// begin reports the initial phase of each pod.
func (l *loop) begin(now time.Time) {
	for _, p := range l.pods {
		l.addPhase(now, p)
		p.dirty = true
	}
}

// turn handles the pending events, does what is due and passes the changes to Observe. It
// reports whether the run is over.
func (l *loop) turn() bool {
	l.mu.Lock()
	l.inbox.Deliver()
	now := time.Now()
	l.advance(now)
	l.update(now)
	over := l.stopping
	for _, p := range l.pods {
		over = over && p.done()
	}
	changes := l.changes
	l.changes = nil
	l.mu.Unlock()
	for _, change := range changes {
		l.options.Observe(change)
	}
	return over
}

// advance advances the machines. Each status is refreshed before, so that it shows every
// state of the machine.
func (l *loop) advance(now time.Time) {
	for _, p := range l.pods {
		due, ok := p.machine.Due()
		if !p.dirty && (!ok || due.After(now)) {
			continue
		}
		l.refresh(now, p)
		l.act(now, p, p.machine.Advance(now))
	}
}

// update updates what depends on the pods: their statuses, the plan, the report and the
// marks. Marks change the statuses again, because readiness gates depend on them.
func (l *loop) update(now time.Time) {
	l.refreshAll(now)
	if l.plan.take(now) {
		l.replan()
	}
	if l.reporting.take(now) {
		l.report(now)
		l.refreshAll(now)
	}
}

// refreshAll computes the statuses that may have changed.
func (l *loop) refreshAll(now time.Time) {
	for _, p := range l.pods {
		l.refresh(now, p)
	}
}

// refresh computes the status of a pod if it may have changed.
func (l *loop) refresh(now time.Time, p *pod) {
	if !p.dirty {
		return
	}
	p.dirty = false
	before := p.object.Status
	p.object.Status = p.machine.Status(now)
	after := &p.object.Status
	l.addContainers(now, p, before.InitContainerStatuses, after.InitContainerStatuses)
	l.addContainers(now, p, before.ContainerStatuses, after.ContainerStatuses)
	l.addConditions(now, p, before.Conditions)
	if before.Phase != after.Phase {
		l.addPhase(now, p)
	}
	if before.Phase != after.Phase || !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		l.plan.schedule(now)
	}
}

// untilDue returns the time until something is due.
func (l *loop) untilDue() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next due
	next.schedule(l.plan.at)
	next.schedule(l.reporting.at)
	for _, p := range l.pods {
		at, _ := p.machine.Due()
		next.schedule(at)
	}
	if next.at.IsZero() {
		return math.MaxInt64
	}
	return max(time.Until(next.at), 0)
}

// stop stops all pods, as their deletion does in a cluster.
func (l *loop) stop(now time.Time) {
	if l.stopping {
		return
	}
	l.stopping = true
	for _, p := range l.pods {
		p.delete(now)
		l.act(now, p, p.machine.Stop(now))
	}
	l.plan.schedule(now)
}

// kill stops all pods without their grace periods, and kills every process.
func (l *loop) kill(now time.Time) {
	l.killed = true
	l.stop(now)
	for _, p := range l.pods {
		for _, running := range p.running {
			running.Kill()
		}
	}
}

// sink posts what the worker reports to the loop.
type sink struct{ *loop }

// ProbeChanged posts the current state of a probe.
func (s sink) ProbeChanged(change worker.Change) {
	s.inbox.Post(func(now time.Time) { s.probeChanged(now, change) })
}

// ProbeGone posts that a probe was removed from the plan.
func (s sink) ProbeGone(key identity.Key) {
	s.inbox.Post(func(time.Time) { s.probeGone(key) })
}

// due is when something must be done. A zero time means never.
type due struct{ at time.Time }

// schedule makes it due at a time, if it is not due earlier. A zero time has no effect.
func (d *due) schedule(at time.Time) { d.at = earliest.Time(d.at, at) }

// take reports whether it is due, and resets the time if it is.
func (d *due) take(now time.Time) bool {
	if d.at.IsZero() || d.at.After(now) {
		return false
	}
	d.at = time.Time{}
	return true
}
