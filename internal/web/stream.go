// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// stream sends the pods and markers of a scope as server-sent events until the client goes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) error {
	access, scope, err := h.admit(r)
	if err != nil {
		return err
	}
	release, err := h.hub.reserve(access.User)
	if err != nil {
		return err
	}
	defer release()
	g, q, err := h.hub.join(r.Context(), scope)
	if err != nil {
		return err
	}
	defer h.hub.leave(g, q)
	w.Header().Set("Content-Type", "text/event-stream")
	// Reverse proxies such as nginx must not wait for more.
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	s := &sender{writer: w, control: http.NewResponseController(w), timeout: h.limits.Write}
	reason := h.send(r, s, q, scope)
	if reason != nil {
		// The client may be gone.
		if e, err := event(eventEnd, model.End{Reason: reason.Error(), Final: h.options.Once && errors.Is(reason, errClosed)}); err == nil {
			_ = s.write(e)
		}
	}
	return nil
}

// comment is what a heartbeat sends.
const comment = ":\n\n"

// send sends what the queue gets. It returns why the stream must end, or nil if the client is gone.
func (h *Handler) send(r *http.Request, s *sender, q *queue, scope Scope) error {
	if err := s.write([]byte(comment)); err != nil {
		return nil
	}
	heartbeat := time.NewTicker(h.limits.Heartbeat)
	defer heartbeat.Stop()
	tick := time.NewTicker(h.limits.Recheck)
	defer tick.Stop()
	check := recheck{handler: h, scope: scope}
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-heartbeat.C:
			if s.write([]byte(comment)) != nil {
				return nil
			}
		case <-tick.C:
			if err := check.run(r); err != nil {
				return err
			}
		case <-q.changed:
			state, events, end := q.take()
			if s.sendAll(state, events) != nil {
				return nil
			}
			if end != nil {
				return reasonOf(end)
			}
		}
	}
}

// maxFailedChecks is how many checks in a row may fail until a stream ends. The API server may be
// restarting, but nobody may read for long what cannot be checked.
const maxFailedChecks = 3

// recheck checks whether the user of a stream may still read its scope.
type recheck struct {
	handler *Handler
	scope   Scope
	// failed is the number of checks in a row that have failed.
	failed int
}

// run returns why the stream must end, or nil.
func (c *recheck) run(r *http.Request) error {
	access, now, err := scopeOf(r, c.handler.options.Guard.Recheck)
	refusal := &Refusal{}
	switch {
	case err == nil && now == c.scope:
		c.failed = 0
		return nil
	case err == nil:
		return fmt.Errorf("the permissions of user %q have changed", access.User)
	case errors.As(err, &refusal) && (refusal.Status == http.StatusUnauthorized || refusal.Status == http.StatusForbidden):
		return refusal
	}
	if c.failed++; c.failed < maxFailedChecks {
		return nil
	}
	return fmt.Errorf("your permissions could not be checked: %w", err)
}

// reasonOf returns the part of an error that is for users.
func reasonOf(err error) error {
	if refusal := new(Refusal); errors.As(err, &refusal) {
		return refusal
	}
	return err
}

// sender writes to a client. Each write has a time limit, so that a client that does not read ends.
type sender struct {
	writer  http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

func (s *sender) write(data []byte) error {
	// Not every writer has deadlines, such as those of tests.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	if _, err := s.writer.Write(data); err != nil {
		return fmt.Errorf("write to the stream: %w", err)
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("write to the stream: %w", err)
	}
	return nil
}

// sendAll sends a state, or nil, and the events after it.
func (s *sender) sendAll(state *state, events [][]byte) error {
	if state != nil {
		if err := state.send(s.write); err != nil {
			return err
		}
	}
	for _, e := range events {
		if err := s.write(e); err != nil {
			return err
		}
	}
	return nil
}
