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
)

// reason is why a run ended.
type reason string

const (
	held        reason = "all held"
	timedOut    reason = "timed out"
	interrupted reason = "interrupted"
	stopped     reason = "stopped"
)

// end is how and when a run ended.
type end struct {
	reason reason
	after  time.Duration
}

// display shows the changes of a run until there are no more.
type display interface {
	// Show returns once the session has ended, or with the error for which it can't go on.
	Show(s *session) error
}

// session is one run of pods and all that follows it.
type session struct {
	runner runner
	feed   *feed
	logs   bool
	// reached is closed when all expressions hold.
	reached chan struct{}

	mu    sync.Mutex
	watch *until.Watch
	done  bool
	// last are the pods as they stood at the end of the run, before they were stopped.
	last []local.PodView
}

func newSession(expressions []until.Expression, logs bool) *session {
	return &session{
		feed: newFeed(), logs: logs, reached: make(chan struct{}),
		watch: until.NewWatch(expressions, nil),
	}
}

// observe takes in a change. It never blocks: the run waits for it.
func (s *session) observe(change local.Change) {
	if s.logs || change.Kind != local.KindLog {
		s.feed.put(change)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What happens after the end of the run, such as its pods' end, no longer counts.
	if s.done {
		return
	}
	s.watch.Observe(change)
	if s.watch.Held() {
		s.done = true
		close(s.reached)
	}
}

// settle ends the judging. It reports whether all expressions held before.
func (s *session) settle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.done
	s.done = true
	return before
}

func (s *session) verdicts() []until.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch.Verdicts()
}

// Take returns what has changed, and how far the run has come.
func (s *session) Take() ([]local.Change, table.Stage) { return s.feed.poll() }

// Snapshot returns the pods as they stand, or stood before they were stopped.
func (s *session) Snapshot() []local.PodView {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last != nil {
		return last
	}
	return s.runner.Snapshot()
}

// stop keeps how the pods stand, as they are to be stopped.
func (s *session) stop() {
	last := s.runner.Snapshot()
	s.mu.Lock()
	s.last = last
	s.mu.Unlock()
	s.feed.reach(table.Stopping)
}

// run runs the pods until all expressions hold, the timeout, where it is not zero, has
// passed, or ctx or an interrupt ends it; a further interrupt kills the pods. It returns
// when all has ended and everything is shown.
func (s *session) run(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, d display) (end, error) {
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
	var e end
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		start := time.Now()
		e.reason = s.await(ctx, timeout, interrupts, finished)
		e.after = time.Since(start)
		s.stop()
		cancel()
		s.killOn(interrupts, finished)
	})
	err := s.runner.Run(ctx)
	close(finished)
	watching.Wait()
	s.feed.reach(table.Ended)
	<-shown
	return e, errors.Join(err, showErr)
}

// await returns why the run is to end.
func (s *session) await(ctx context.Context, timeout time.Duration, interrupts <-chan os.Signal, finished <-chan struct{}) reason {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	why := held
	select {
	case <-s.reached:
	case <-expired:
		why = timedOut
	case <-interrupts:
		why = interrupted
	case <-ctx.Done():
		why = interrupted
	case <-finished:
		why = stopped
	}
	if s.settle() {
		return held
	}
	return why
}

// killOn kills the pods at an interrupt, until the run has finished.
func (s *session) killOn(interrupts <-chan os.Signal, finished <-chan struct{}) {
	for {
		select {
		case <-interrupts:
			s.runner.Kill()
		case <-finished:
			return
		}
	}
}
