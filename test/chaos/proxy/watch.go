// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"time"
)

// plan is what happens to a watch.
type plan struct {
	// delay is the age at which an event is delivered.
	delay time.Duration
	// cut, end and expire are when that happens, and zero if it does not.
	cut, end, expire time.Time
}

// planOf returns what happens to a watch that started at the time.
func planOf(faults []*active, r request, started time.Time) plan {
	var out plan
	for _, fault := range faults {
		if !fault.ofEvents(r) || !fault.hits(r) {
			continue
		}
		due := fault.since
		if started.After(due) {
			due = started
		}
		due = due.Add(fault.After)
		switch fault.Kind {
		case DelayWatches:
			out.delay = max(out.delay, fault.Delay)
		case CutWatches:
			out.cut = first(out.cut, due)
		case EndWatches:
			out.end = first(out.end, due)
		case Expire:
			if r.old || fault.After > 0 || started.Before(fault.since) {
				out.expire = first(out.expire, due)
			}
		}
	}
	return out
}

// first returns the earlier of two times that are not zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// action is what a watch does next.
type action int

const (
	// wait waits until a time or a change.
	wait action = iota
	deliver
	cut
	end
	expire
	// overflow ends a watch whose queue is full.
	overflow
	// finish ends a watch as the API server ended it.
	finish
)

// next returns what a watch does at the time. If it waits, until is zero if only a change ends that.
func (p plan) next(now time.Time, v view) (next action, until time.Time) {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	switch {
	case due(p.expire):
		return expire, time.Time{}
	case due(p.end):
		return end, time.Time{}
	}
	until = first(p.expire, p.end)
	if len(v.head.text) == 0 {
		if v.err != nil {
			return finish, time.Time{}
		}
		return wait, until
	}
	delivery := v.head.at.Add(p.delay)
	switch {
	case !due(delivery) && v.full:
		return overflow, time.Time{}
	case !due(delivery):
		return wait, first(until, delivery)
	case due(p.cut):
		return cut, time.Time{}
	}
	return deliver, time.Time{}
}

var errCut = errors.New("the watch is cut")

// stream is the body of a watch. It reads the events of the API server, and returns what the client
// gets. Each Read returns at most one event.
type stream struct {
	ctx     context.Context
	request request
	faults  *faults
	format  format
	body    io.ReadCloser
	queue   *queue
	done    chan struct{}
	started time.Time
	// cut resets the connection of the client.
	cut func()

	state   *state
	plan    plan
	delayed bool
	// out are the texts that Reads return before err.
	out [][]byte
	err error
}

func newStream(ctx context.Context, s stream, limit int) *stream {
	s.ctx, s.queue, s.done, s.started = ctx, newQueue(limit), make(chan struct{}), time.Now()
	go s.pump(newEvents(s.format, s.body))
	return &s
}

// pump adds the events of the API server to the queue.
func (s *stream) pump(events *events) {
	defer close(s.done)
	for {
		text, err := events.next()
		if err != nil {
			s.queue.end(err)
			return
		}
		if !s.queue.add(text) {
			return
		}
	}
}

// Close ends the request to the API server, and waits until nothing of the watch runs any more.
func (s *stream) Close() error {
	err := s.body.Close()
	close(s.queue.closed)
	<-s.done
	return err //nolint:wrapcheck // The body of a response.
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.err == nil {
		s.advance()
	}
	if len(s.out) == 0 {
		if errors.Is(s.err, errCut) {
			s.cut()
		}
		return 0, s.err
	}
	n := copy(p, s.out[0])
	s.out[0] = s.out[0][n:]
	if len(s.out[0]) == 0 {
		s.out = s.out[1:]
	}
	return n, nil
}

// advance does what is next: it sets out or err, or waits.
func (s *stream) advance() {
	if state := s.faults.state.Load(); state != s.state {
		s.state, s.plan, s.delayed = state, planOf(state.faults, s.request, s.started), false
	}
	v := s.queue.look()
	if s.plan.delay > 0 && len(v.head.text) > 0 && !s.delayed {
		s.delayed = true
		s.faults.count(DelayWatches, 0)
	}
	next, until := s.plan.next(time.Now(), v)
	switch next {
	case wait:
		s.wait(until)
	case deliver:
		s.queue.take()
		s.out = [][]byte{v.head.text}
	case cut:
		// A server of HTTP/2 sends a part at the latest before it accepts the next one. Therefore, the
		// client has the first part before the connection is reset.
		half := len(v.head.text) / 2
		s.out, s.err = [][]byte{v.head.text[:half], v.head.text[half : half+1]}, errCut
	case end:
		s.faults.count(EndWatches, 0)
		s.err = io.EOF
	case overflow:
		s.err = io.EOF
	case expire:
		text, err := s.format.expired()
		if err != nil {
			s.err = err
			return
		}
		s.faults.count(Expire, 0)
		s.out, s.err = [][]byte{text}, io.EOF
	case finish:
		s.err = v.err
	}
}

// wait waits for an event, for other faults, for the end of the request, or until a time.
func (s *stream) wait(until time.Time) {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-timeout:
	case <-s.queue.changed:
	case <-s.state.replaced:
	case <-s.ctx.Done():
		s.err = s.ctx.Err()
	}
}
