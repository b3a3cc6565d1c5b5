// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/cli/until"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/lifecycle"
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

// session is one run of pods, with its expressions and its display.
type session struct {
	runner runner
	logs   bool
	// brief hides the changes that only show how the pods are stopped at the end of the run.
	brief bool
	// page follows the changes for the web page. It is nil without a page.
	page *pagesource.Source
	// met is closed when all expressions are met.
	met chan struct{}

	mu sync.Mutex
	// changes are those that are not shown yet. The display may be slow. changed is signaled for each
	// change and each stage.
	changes []local.Change
	changed *sync.Cond
	// notes are those that a table does not show yet.
	notes []table.Note
	stage table.Stage
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
	s := &session{logs: logs, met: make(chan struct{}), watch: until.NewWatch(expressions, nil)}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// observe handles a change. It never waits for the display, because the run waits for it.
func (s *session) observe(change local.Change) {
	if s.page != nil {
		s.page.Observe(change)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.logs || change.Kind != local.KindLog) && (!s.brief || !s.quiet || !isShutdownNoise(change)) {
		s.changes = append(s.changes, change)
		s.changed.Signal()
	}
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

// isShutdownNoise reports whether a change only shows that the pods are being stopped after
// the run.
func isShutdownNoise(change local.Change) bool {
	switch change.Kind {
	case local.KindPod, local.KindContainer, local.KindCondition, local.KindProbe:
		return true
	case local.KindEvent:
		return change.Event.Type == corev1.EventTypeNormal || change.Event.Reason == lifecycle.ReasonUnhealthy
	default:
		return false
	}
}

// note adds a note for the table.
func (s *session) note(about, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, table.Note{About: about, Text: text})
}

// Take returns the changes and the notes since the last call, without waiting, and the stage of the run.
func (s *session) Take() ([]local.Change, []table.Note, table.Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, notes := s.changes, s.notes
	s.changes, s.notes = nil, nil
	return changes, notes, s.stage
}

// each prints the changes until the session has ended.
func (s *session) each(show func(local.Change) error) error {
	for {
		s.mu.Lock()
		for len(s.changes) == 0 && s.stage != table.Ended {
			s.changed.Wait()
		}
		s.mu.Unlock()
		changes, _, _ := s.Take()
		if len(changes) == 0 {
			return nil
		}
		for _, change := range changes {
			if err := show(change); err != nil {
				return err
			}
		}
	}
}

// setStage records the stage of the run.
func (s *session) setStage(stage table.Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage = stage
	s.changed.Signal()
}

// settle ends the evaluation of the expressions. It reports whether all of them were met before.
func (s *session) settle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := s.settled
	s.settled = true
	return met
}

func (s *session) results() []until.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch.Results()
}

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
	s.setStage(table.Stopping)
}

// run runs the pods until all expressions are met, a nonzero timeout has passed, ctx ends, or
// an interrupt arrives. A second interrupt kills the pods. It returns when all pods have
// ended and show has returned, which shows the changes until the session has ended.
func (s *session) run(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, show func() error) (runEnd, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown := make(chan error, 1)
	go func() {
		err := show()
		if err != nil {
			cancel()
		}
		shown <- err
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
	s.setStage(table.Ended)
	return end, errors.Join(err, <-shown)
}

// await waits until the run must end and returns the reason.
func (s *session) await(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, finished <-chan struct{}) endReason {
	var expired <-chan time.Time
	if timeout > 0 {
		expired = time.After(timeout)
	}
	reason := interrupted
	select {
	case <-s.met:
	case <-expired:
		reason = timedOut
	case <-interrupts:
	case <-ctx.Done():
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
