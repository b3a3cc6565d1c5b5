// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// The names of the events of a stream.
const (
	eventPods    = "pods"
	eventMarkers = "markers"
	eventReady   = "ready"
	eventEnd     = "end"
)

// event returns an event as it is sent. JSON has no line breaks, so the data are one line.
func event(name string, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", name, err)
	}
	return slices.Concat([]byte("event: "+name+"\ndata: "), text, []byte("\n\n")), nil
}

// podEvents returns the events for the pods, in chunks.
func podEvents(pods []json.RawMessage, removed []string, reset bool) ([][]byte, error) {
	var events [][]byte
	for len(pods)+len(removed) > 0 || reset {
		podCount, removedCount := min(len(pods), model.MaxChunk), min(len(removed), model.MaxChunk)
		e, err := event(eventPods, model.Pods[json.RawMessage]{
			Reset: reset, Pods: append([]json.RawMessage{}, pods[:podCount]...), Removed: removed[:removedCount],
		})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
		pods, removed, reset = pods[podCount:], removed[removedCount:], false
	}
	return events, nil
}

// state is the whole state of a group at one time. It shares the JSON of the pods with the group.
type state struct {
	pods    []json.RawMessage
	markers []byte
}

// send sends the state with one buffer at a time, because the whole is large.
func (s *state) send(write func([]byte) error) error {
	reset := true
	for chunk := range slices.Chunk(s.pods, model.MaxChunk) {
		if err := s.sendPods(chunk, reset, write); err != nil {
			return err
		}
		reset = false
	}
	if reset {
		if err := s.sendPods(nil, reset, write); err != nil {
			return err
		}
	}
	if err := write(s.markers); err != nil {
		return err
	}
	ready, err := event(eventReady, struct{}{})
	if err != nil {
		return err
	}
	return write(ready)
}

func (s *state) sendPods(pods []json.RawMessage, reset bool, write func([]byte) error) error {
	events, err := podEvents(pods, nil, reset)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}

// queue has what waits to be sent to one stream. Its events are shared by all streams of a group.
type queue struct {
	limit int
	// changed receives a value after each change.
	changed chan struct{}

	mu     sync.Mutex
	state  *state
	events [][]byte
	bytes  int
	err    error
}

func newQueue(limit int) *queue { return &queue{limit: limit, changed: make(chan struct{}, 1)} }

// start adds the whole state.
func (q *queue) start(s *state) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.state = s
	q.signal()
}

// put adds events. If too much waits, the stream ends, and the page connects again.
func (q *queue) put(events [][]byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	for _, e := range events {
		q.bytes += len(e)
	}
	q.events = append(q.events, events...)
	if q.bytes > q.limit {
		q.events, q.err = nil, &Refusal{http.StatusServiceUnavailable, "the connection is too slow for the changes"}
	}
	q.signal()
}

// end adds the end of the stream.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// take returns what waits, and why the stream ends after it, or nil.
func (q *queue) take() (s *state, events [][]byte, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, events, err = q.state, q.events, q.err
	q.state, q.events, q.bytes = nil, nil, 0
	return s, events, err
}
