// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local/address"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/probe/exec"
	"github.com/seamark-dev/seamark/internal/probe/probers"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/worker"
)

// replanDelay is how long labels rest before the markers are matched anew, as the manager
// lets a burst of changes rest. It also keeps a marker whose own label makes it match no
// more from turning in circles at full speed.
const replanDelay = 100 * time.Millisecond

// maxLinesAhead is how many lines of output the loop may lag behind. Containers that write
// faster wait.
const maxLinesAhead = 256

// loop is one run. Only its goroutine uses what is in it, but for mail.
type loop struct {
	*Runner
	keeper *process.Keeper
	worker *worker.Worker
	execs  *execs
	base   map[string]string
	// lines has a token for every line of output that waits for the loop.
	lines chan struct{}
	// hooks takes the hooks to run.
	hooks chan hookRun

	byUID map[types.UID]*pod
	// planned are the probes last given to the worker.
	planned map[probeid.Key]plannedProbe
	// generation counts the markers' plans, of which plan is in force.
	generation int64
	newest     report.Plan
	plan       report.Plan
	states     report.States
	ledger     report.Ledger

	// replanAt and reportAt are when the plan and the report are due; zero while not.
	replanAt, reportAt time.Time
	stopping           bool
	changes            []Change
}

// newLoop gives the pods their addresses and folders.
func newLoop(r *Runner, keeper *process.Keeper, lease *address.Lease) (*loop, error) {
	l := &loop{
		Runner: r, keeper: keeper, execs: newExecs(keeper), base: baseEnvironment(),
		lines:   make(chan struct{}, maxLinesAhead),
		hooks:   make(chan hookRun),
		byUID:   map[types.UID]*pod{},
		planned: map[probeid.Key]plannedProbe{},
		states:  report.States{},
		ledger:  report.Read(emptyStatus()),
	}
	l.worker = worker.New(worker.Options{
		Prober:  probers.New(exec.New(l.execs, configv1alpha1.DefaultExecConcurrency, nil), r.options.Version),
		Sink:    sink{r.mail},
		Observe: func(run worker.Run) { r.mail.post(func(l *loop, now time.Time) { l.ran(now, run) }) },
		// The machine has not just come up with hundreds of probes: none needs to wait.
		Rand: func() float64 { return 0 },
	})
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, p := range r.pods {
		ip := "127.0.0.1"
		if i < len(lease.Addresses) {
			ip = lease.Addresses[i].String()
		}
		l.place(now, p, ip)
		if err := l.makeVolumes(p); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// place binds a pod to this machine.
func (l *loop) place(now time.Time, p *pod, ip string) {
	started := metav1.NewTime(now)
	p.object.CreationTimestamp = started
	p.object.Status.StartTime = &started
	p.object.Status.HostIP = "127.0.0.1"
	p.object.Status.PodIP = ip
	p.dirty = true
	l.byUID[p.object.UID] = p
}

// run runs the pods until ctx ends or they are killed, and all have stopped.
func (l *loop) run(ctx context.Context) error {
	// What runs beside the loop ends with it, and not with ctx: pods are stopped first.
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	defer func() {
		cancel()
		beside.Wait()
	}()
	beside.Go(func() { l.worker.Run(inner) })
	beside.Go(func() { l.serveHooks(inner) })
	l.worker.ContainersSynced()
	l.mail.post(func(l *loop, now time.Time) { l.begin(now) })

	timer := time.NewTimer(0)
	defer timer.Stop()
	done, lost := ctx.Done(), l.keeper.Lost()
	var err error
	for !l.turn() {
		timer.Reset(l.untilDue())
		select {
		case <-done:
			done = nil
			l.mail.post(func(l *loop, now time.Time) { l.stop(now) })
		case <-lost:
			lost, err = nil, errors.New("the reaper has ended: nothing holds the processes, so they are killed")
			l.Kill()
		case <-l.mail.wake:
		case <-timer.C:
		}
	}
	return err
}

// begin starts what each pod begins with.
func (l *loop) begin(now time.Time) {
	for _, p := range l.pods {
		l.tell(p.phaseChange(now))
		p.dirty = true
	}
}

// turn does what is pending and due, tells of what has changed, and returns whether the
// run is over.
func (l *loop) turn() bool {
	jobs := l.mail.take()
	l.mu.Lock()
	for _, job := range jobs {
		job(l, time.Now())
	}
	now := time.Now()
	l.advance(now)
	l.settle(now)
	over := l.stopping
	for _, p := range l.pods {
		over = over && p.machine.Done() && len(p.running) == 0
	}
	changes := l.changes
	l.changes = nil
	l.mu.Unlock()
	for _, change := range changes {
		l.options.Observe(change)
	}
	return over
}

// advance has the machines go on, once the statuses have shown what has happened to them.
func (l *loop) advance(now time.Time) {
	for _, p := range l.pods {
		due, ok := p.machine.Due()
		if !p.dirty && (!ok || due.After(now)) {
			continue
		}
		if p.dirty {
			l.refreshStatus(now, p)
		}
		l.act(now, p, p.machine.Advance(now))
	}
}

// settle brings everything in line with what has happened: the pods' statuses, the plan,
// the report, the marks, and the statuses again, which readiness gates hang on.
func (l *loop) settle(now time.Time) {
	l.refreshStatuses(now)
	if !l.replanAt.IsZero() && !l.replanAt.After(now) {
		l.replan(now)
	}
	if !l.reportAt.IsZero() && !l.reportAt.After(now) {
		l.report(now)
		l.refreshStatuses(now)
	}
}

// untilDue returns how long nothing is due.
func (l *loop) untilDue() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Time
	consider := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, p := range l.pods {
		if due, ok := p.machine.Due(); ok {
			consider(due)
		}
	}
	consider(l.replanAt)
	consider(l.reportAt)
	if next.IsZero() {
		return math.MaxInt64
	}
	return max(time.Until(next), 0)
}

// sooner moves a time to at, where that is sooner.
func sooner(t *time.Time, at time.Time) {
	if t.IsZero() || at.Before(*t) {
		*t = at
	}
}

// tell keeps a change for when the turn is over.
func (l *loop) tell(change Change) { l.changes = append(l.changes, change) }

// stop stops all pods, as if they were deleted.
func (l *loop) stop(now time.Time) {
	if l.stopping {
		return
	}
	l.stopping = true
	for _, p := range l.pods {
		deleted := metav1.NewTime(now)
		p.object.DeletionTimestamp = &deleted
		p.object.DeletionGracePeriodSeconds = p.object.Spec.TerminationGracePeriodSeconds
		l.act(now, p, p.machine.Stop(now))
	}
	sooner(&l.replanAt, now)
}

// killAll kills every process.
func (l *loop) killAll() {
	for _, p := range l.pods {
		for _, running := range p.running {
			running.Kill()
		}
	}
}

// podOf returns the pod and the container of a key; nil where it is gone.
func (l *loop) podOf(container probeid.Container) (*pod, *lifecycle.Container) {
	p := l.byUID[container.PodUID]
	if p == nil {
		return nil, nil
	}
	return p, p.machine.Container(container.Name)
}
