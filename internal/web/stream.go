// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"net/http"
	"time"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// stream sends the pods and markers of a scope as server-sent events until the client goes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) error {
	namespace, err := namespaceOf(r)
	if err != nil {
		return err
	}
	g, leave, err := h.hub.join(Scope{Namespace: namespace, Full: h.options.Access().Full})
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
		_ = s.write(event(eventEnd, model.End{Reason: reason.Message, Final: reason == errClosed}))
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
		case <-changed:
		}
	}
}

// comment is what a heartbeat sends.
const comment = ":\n\n"

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
