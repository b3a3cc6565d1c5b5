// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/pagesource"
)

// endReason is why a run ended.
type endReason string

const (
	allMet      endReason = "all expressions met"
	timedOut    endReason = "timed out"
	interrupted endReason = "interrupted"
	stopped     endReason = "stopped"
)

// runEnd is why and when a run ended.
type runEnd struct {
	reason endReason
	after  time.Duration
}

// display shows the changes of a run.
type display interface {
	// Show returns when the session has ended or the display has failed.
	Show(s *session) error
}

// session is one run of pods, with its expressions and its display.
type session struct {
	runner runner
	feed   *feed
	logs   bool
	// brief hides the changes that only show how the pods are stopped at the end of the run.
	brief bool
	// warnings are the warnings that were printed before the run.
	warnings []string
	// page follows the changes for the web page, whose address is what url returns. Without a page,
	// both are nil.
	page *localsource.Source
	url  func() string
	// met is closed when all expressions are met.
	met chan struct{}

	mu    sync.Mutex
	watch *until.Watch
	// quiet is whether the pods of a finished run are being stopped. It stays false after an
	// interrupt: the user waits for the pods then, and sees how they stop.
	quiet bool
	// settled is whether changes no longer count.
	settled bool
	// last is the state of the pods at the end of the run, before they were stopped.
	last []local.PodView
}

func newSession(expressions []until.Expression, logs bool) *session {
	return &session{
		feed: newFeed(), logs: logs, met: make(chan struct{}),
		watch: until.NewWatch(expressions, nil),
	}
}

// observe handles a change. It never blocks, because the run waits for it.
func (s *session) observe(change local.Change) {
	shown := s.logs || change.Kind != local.KindLog
	if shown && (!s.isQuiet() || !isShutdownNoise(change)) {
		s.feed.put(change)
	}
	if s.page != nil {
		s.page.Observe(change)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Changes after the end of the run, such as the termination of its pods, do not count.
	if s.settled {
		return
	}
	s.watch.Observe(change)
	if s.watch.Met() {
		s.settled = true
		close(s.met)
	}
}

// settle ends the evaluation of the expressions. It reports whether all of them were met before.
func (s *session) settle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := s.settled
	s.settled = true
	return met
}

func (s *session) isQuiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brief && s.quiet
}

func (s *session) verdicts() []until.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch.Verdicts()
}

// Take returns the changes since the last call and the stage of the run.
func (s *session) Take() ([]local.Change, table.Stage) { return s.feed.poll() }

// Snapshot returns the current state of the pods, or their state before they were stopped.
func (s *session) Snapshot() []local.PodView {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil {
		return last
	}
	return s.runner.Snapshot()
}

// keepLast keeps the state of the pods before they are stopped for the reason.
func (s *session) keepLast(reason endReason) {
	last := s.runner.Snapshot()
	s.mu.Lock()
	s.last, s.quiet = last, reason != interrupted
	s.mu.Unlock()
	s.feed.setStage(table.Stopping)
}

// run runs the pods until all expressions are met, a nonzero timeout has passed, ctx ends, or
// an interrupt arrives. A second interrupt kills the pods. It returns when all pods have
// ended and all changes are shown.
func (s *session) run(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, d display) (runEnd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var showErr error
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		showErr = d.Show(s)
		if showErr != nil {
			cancel()
		}
	}()

	finished := make(chan struct{})
	var end runEnd
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		start := time.Now()
		end.reason = s.await(ctx, timeout, interrupts, finished)
		end.after = time.Since(start)
		s.keepLast(end.reason)
		cancel()
		s.killOnInterrupt(interrupts, finished)
	})
	err := s.runner.Run(ctx)
	close(finished)
	watching.Wait()
	s.feed.setStage(table.Ended)
	<-shown
	return end, errors.Join(err, showErr)
}

// await waits until the run must end and returns the reason.
func (s *session) await(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, finished <-chan struct{}) endReason {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	reason := allMet
	select {
	case <-s.met:
	case <-expired:
		reason = timedOut
	case <-interrupts:
		reason = interrupted
	case <-ctx.Done():
		reason = interrupted
	case <-finished:
		reason = stopped
	}
	if s.settle() {
		return allMet
	}
	return reason
}

// killOnInterrupt kills the pods on each interrupt until the run has finished.
func (s *session) killOnInterrupt(interrupts <-chan os.Signal, finished <-chan struct{}) {
	for {
		select {
		case <-interrupts:
			s.runner.Kill()
		case <-finished:
			return
		}
	}
}
