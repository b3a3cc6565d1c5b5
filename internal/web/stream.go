// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// stream sends the pods and markers of a scope as server-sent events until the client goes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) error {
	access, scope, err := h.admit(r, false)
	if err != nil {
		return err
	}
	g, leave, err := h.hub.join(scope, access.User)
	if err != nil {
		return err
	}
	defer leave()
	select {
	case <-g.opened:
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	if g.openErr != nil {
		return g.openErr
	}
	w.Header().Set("Content-Type", "text/event-stream")
	// Reverse proxies such as nginx must not wait for more.
	w.Header().Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	s := &sender{writer: w, control: http.NewResponseController(w)}
	if err := h.send(r, s, g); err != nil {
		reason := refusalOf(err)
		// The client may be gone.
		_ = s.write(event(eventEnd, model.End{Reason: reason.Message, Final: h.options.Once && reason == errClosed}))
	}
	return nil
}

// send sends what the group has. It returns why the stream must end, or nil if the client is gone.
func (h *Handler) send(r *http.Request, s *sender, g *group) error {
	if !s.write([]byte(comment)) {
		return nil
	}
	heartbeat := time.NewTicker(h.limits.Heartbeat)
	defer heartbeat.Stop()
	tick := time.NewTicker(h.limits.Recheck)
	defer tick.Stop()
	check := recheck{handler: h, scope: g.scope}
	for sent := -1; ; {
		next, all, changed, end := g.read(sent)
		for e := range next.events {
			if !s.write(e) {
				return nil
			}
		}
		if sent = all; end != nil {
			return end
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-heartbeat.C:
			if !s.write([]byte(comment)) {
				return nil
			}
		case <-tick.C:
			if err := check.run(r); err != nil {
				return err
			}
		case <-changed:
		}
	}
}

// comment is what a heartbeat sends.
const comment = ":\n\n"

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
	access, now, err := c.handler.admit(r, true)
	switch {
	case err == nil && now == c.scope:
		c.failed = 0
		return nil
	case err == nil:
		return fmt.Errorf("the permissions of user %q have changed", access.User)
	}
	if status := refusalOf(err).Status; status == http.StatusUnauthorized || status == http.StatusForbidden {
		return err
	}
	if c.failed++; c.failed < maxFailedChecks {
		return nil
	}
	return fmt.Errorf("your permissions could not be checked: %v", err) //nolint:errorlint // users get the whole text
}

// sender writes to a client. Each write has a time limit, so that a client that does not read ends.
type sender struct {
	writer  http.ResponseWriter
	control *http.ResponseController
}

// write sends data at once. It returns false if the client is gone.
func (s *sender) write(data []byte) bool {
	// Not every writer has deadlines, such as those of tests.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := s.writer.Write(data)
	return err == nil && s.control.Flush() == nil
}
