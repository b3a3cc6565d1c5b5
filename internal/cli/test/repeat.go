// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/dryrun"
	"github.com/seamark-dev/seamark/internal/cli/remote"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// repeat runs all probes that have no result at their periods for the duration, and calls show
// after each run, one call at a time. It ends early if ctx ends, show fails, or no probe may run.
func (r *runner) repeat(ctx context.Context, attempts []*attempt, length time.Duration, show func(*attempt) error) error {
	// A deadline would end connections before ctx ends, and the run would count as one with an error.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(length, stop).Stop()
	s := &session{runner: r, show: show, stop: stop, slots: make(chan struct{}, r.parallel)}
	var repetitions []*repetition
	for _, a := range attempts {
		if a.Result != "" {
			continue
		}
		if task, run, ready := a.prepare(r.now()); ready {
			a.Series = &dryrun.Series{}
			repetitions = append(repetitions, &repetition{attempt: a, session: s, task: task, container: run})
		}
	}
	s.allowed = len(repetitions)
	var group errgroup.Group
	for _, p := range repetitions {
		group.Go(func() error { p.run(ctx); return nil })
	}
	// The functions return no errors.
	_ = group.Wait()
	end := r.now()
	for _, p := range repetitions {
		p.conclude(end)
	}
	return s.err
}

// session is what the repetitions of one call of repeat share.
type session struct {
	*runner
	show func(*attempt) error
	stop func()
	// slots limits the probes at the same time.
	slots chan struct{}

	mu sync.Mutex
	// allowed is the number of probes that are not known to lack a permission.
	allowed int
	err     error
}

// ended handles a run that has ended.
func (s *session) ended(p *repetition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing *remote.DeniedError
	if !p.denied && errors.As(p.lastErr, &missing) {
		p.denied = true
		s.allowed--
	}
	if s.err == nil {
		s.err = s.show(p.attempt)
	}
	if s.err != nil || s.allowed == 0 {
		s.stop()
	}
}

// repetition runs one probe again and again. A worker of its own, as it is in the agent, decides
// when the probe runs and what its state is. The fields are complete when run returns.
type repetition struct {
	*attempt
	*session
	task      worker.Task
	container thresholds.ContainerRun

	// took is how long the newest run took. There is only one run at a time.
	took time.Duration
	// finished is the run that has ended, until its state is known.
	finished *worker.Run
	state    thresholds.State
	lastErr  error
	denied   bool
}

func (p *repetition) run(ctx context.Context) {
	w := worker.New(worker.Options{Prober: p, Sink: p, Observe: func(run worker.Run) { p.finished = &run }, Now: p.now})
	w.ContainerChanged(p.task.Key.ContainerKey, p.container)
	w.SetPlan([]worker.Task{p.task}, func() {})
	w.ContainersSynced()
	w.Run(ctx)
}

// Probe runs the probe once, when a slot is free. It measures the time from the start of the probe
// in the container.
func (p *repetition) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return probing.Outcome{}, fmt.Errorf("wait for another probe: %w", ctx.Err())
	}
	start, started := p.now(), target.Started
	target.Started = func() {
		start = p.now()
		if started != nil {
			started()
		}
	}
	outcome, err := p.transport.Prober(remote.Container{Pod: p.task.Pod, Name: p.task.Key.Name}).Probe(ctx, target)
	p.took = p.now().Sub(start)
	return outcome, err
}

// ProbeChanged records the run that led to the change, if a run did.
func (p *repetition) ProbeChanged(change worker.Change) {
	p.state = change.State
	finished := p.finished
	if finished == nil {
		return
	}
	p.finished, p.lastErr = nil, finished.Err
	run := dryrun.Run{Time: p.now(), Seconds: p.took.Seconds(), State: change.State.State}
	if finished.Err != nil {
		run.Message = message(finished.Err)
	} else {
		run.SetOutcome(finished.Outcome, finished.Streak, p.task.Policy)
		p.ran, p.Threshold, p.TimedOut = true, run.Threshold, p.TimedOut || run.TimedOut
	}
	p.Seconds = run.Seconds
	series := p.Series
	series.Add(run, change.Transition)
	p.ended(p)
}

// ProbeGone does nothing: the plan does not change.
func (p *repetition) ProbeGone(identity.Key) {}

// conclude sets the result from the runs.
func (p *repetition) conclude(end time.Time) {
	runs := p.Runs
	ready := p.container.StartedAt.Add(p.task.Policy.InitialDelay)
	switch {
	case p.state.State != "":
		threshold := p.Threshold
		p.finish(p.state)
		p.Threshold = threshold
	case p.ran:
		p.Result, p.Message = undecided, runs[len(runs)-1].Message
		p.note()
	case p.lastErr != nil:
		p.fail(p.lastErr)
	case ready.After(end):
		p.Result, p.Message = notRun, fmt.Sprintf("initialDelaySeconds: the first run is due %s later", ready.Sub(end).Round(time.Second))
	default:
		p.Result, p.Message = resultError, "no run has ended"
	}
	if p.state.Problem.Reason == v1alpha1.ProbeWaitingForSlot {
		p.Notes = append(p.Notes, "waited for other probes for 3 periods or longer: see --parallel")
	}
}
