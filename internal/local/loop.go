// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/address"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/exec"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// loop is one run. It passes each event to the part that handles it, and calls the parts
// in order when they are due. Only its goroutine uses the parts.
type loop struct {
	*Runner
	keeper *process.Keeper
	worker *worker.Worker
	// commands runs the commands of exec probes.
	commands *exec.Prober

	schedule   *schedule
	changes    *changes
	containers *containers
	probes     *probes
	marks      *marks
	statuses   *statuses
	stopping   bool
}

// newLoop gives the pods their addresses and volumes, checks that their ports are free, and
// assembles the parts.
func newLoop(r *Runner, keeper *process.Keeper, lease *address.Lease) (*loop, error) {
	l := &loop{Runner: r, keeper: keeper, schedule: &schedule{}, changes: &changes{}}
	execs := newExecs(keeper)
	if err := l.admit(lease); err != nil {
		return nil, err
	}
	listeners := newListeners(keeper, r.pods)
	if err := listeners.check(r.pods.list, r.markers); err != nil {
		return nil, err
	}
	l.commands = exec.New(execs, configv1alpha1.DefaultExecConcurrency, nil)
	l.worker = worker.New(worker.Options{
		Prober:  newProbers(l.commands, execs, listeners, r.options.Version),
		Sink:    sink{l},
		Observe: func(run worker.Run) { r.inbox.Post(func(now time.Time) { l.probes.ran(now, run) }) },
		// A local run has too few probes to spread them over a period.
		Now: time.Now,
	})
	l.containers = newContainers(containers{
		pods: r.pods, listeners: listeners, objects: &r.options.Objects, keeper: keeper, execs: execs, observer: l.worker,
		inbox: r.inbox, changes: l.changes, schedule: l.schedule,
	})
	l.probes = &probes{pods: r.pods, markers: r.markers, planner: l.worker, changes: l.changes}
	l.marks = newMarks(r.pods, r.markers, l.changes, l.schedule)
	l.statuses = &statuses{pods: r.pods, changes: l.changes, schedule: l.schedule}
	return l, nil
}

// admit gives the pods their addresses and volumes.
func (l *loop) admit(lease *address.Lease) error {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.pods.list {
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
	running.Go(func() { l.containers.serveHooks(inner) })
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
	for _, p := range l.pods.list {
		l.changes.phase(now, p)
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
	l.settle(now)
	over := l.stopping
	for _, p := range l.pods.list {
		over = over && p.done()
	}
	changes := l.changes.take()
	l.mu.Unlock()
	for _, change := range changes {
		l.options.Observe(change)
	}
	return over
}

// advance advances the machines. Each status is refreshed before, so that it shows every
// state of the machine.
func (l *loop) advance(now time.Time) {
	for _, p := range l.pods.list {
		due, ok := p.machine.Due()
		if !p.dirty && (!ok || due.After(now)) {
			continue
		}
		l.statuses.refresh(now, p)
		l.containers.act(now, p, p.machine.Advance(now))
	}
}

// settle updates what depends on the pods: their statuses, the plan, the report and the
// marks. Marks change the statuses again, because readiness gates depend on them.
func (l *loop) settle(now time.Time) {
	l.statuses.refreshAll(now)
	if l.schedule.takePlan(now) {
		l.probes.replan(func(applied report.Plan) {
			l.inbox.Post(func(now time.Time) { l.marks.planApplied(now, applied) })
		})
	}
	if l.schedule.takeReport(now) {
		l.marks.report(now)
		l.statuses.refreshAll(now)
	}
}

// untilDue returns the time until something is due.
func (l *loop) untilDue() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := earlier(l.schedule.plan, l.schedule.report)
	for _, p := range l.pods.list {
		due, _ := p.machine.Due()
		next = earlier(next, due)
	}
	if next.IsZero() {
		return math.MaxInt64
	}
	return max(time.Until(next), 0)
}

// stop stops all pods, as their deletion does in a cluster.
func (l *loop) stop(now time.Time) {
	if l.stopping {
		return
	}
	l.stopping = true
	for _, p := range l.pods.list {
		p.delete(now)
		l.containers.act(now, p, p.machine.Stop(now))
	}
	l.schedule.planBy(now)
}

// kill stops all pods without their grace periods.
func (l *loop) kill(now time.Time) {
	l.containers.killed = true
	l.stop(now)
	l.containers.killAll()
}

// sink posts what the worker reports to the loop.
type sink struct{ *loop }

var _ worker.Sink = sink{}

// ProbeChanged posts the current state of a probe.
func (s sink) ProbeChanged(change worker.Change) {
	s.inbox.Post(func(now time.Time) { s.probeChanged(now, change) })
}

// ProbeGone posts that a probe was removed from the plan.
func (s sink) ProbeGone(key probeid.Key) {
	s.inbox.Post(func(time.Time) {
		if s.probes.gone(key) {
			s.marks.forget(key)
		}
	})
}

// probeChanged passes the state of a probe to what depends on it: the marks on a marker's
// probe, the container on a transition of one of the kubelet's.
func (l *loop) probeChanged(now time.Time, change worker.Change) {
	planned, known := l.probes.changed(now, change)
	switch {
	case !known:
	case planned.kind == ProbeMarker:
		l.marks.set(now, change.Key, change.State)
	case change.Transition != nil:
		l.containers.probed(now, planned, change.Key.Name, change.Transition.To)
	}
}
