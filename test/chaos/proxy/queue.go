// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"sync"
	"time"
)

// event is an event of a watch.
type event struct {
	at   time.Time
	text []byte
}

// queue has the events of a watch between the API server and the client, at most limit bytes and one
// event. One goroutine adds events and another takes them.
type queue struct {
	limit int
	// changed has a value after a change by the goroutine that adds, and room by the one that takes.
	changed, room chan struct{}
	closed        chan struct{}

	mu     sync.Mutex
	events []event
	size   int
	err    error
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, changed: make(chan struct{}, 1), room: make(chan struct{}, 1), closed: make(chan struct{})}
}

// add adds an event when there is room. It returns false if the queue is closed.
func (q *queue) add(text []byte) bool {
	at := time.Now()
	for q.look().full {
		select {
		case <-q.room:
		case <-q.closed:
			return false
		}
	}
	q.mu.Lock()
	q.events = append(q.events, event{at: at, text: text})
	q.size += len(text)
	q.mu.Unlock()
	wake(q.changed)
	return true
}

// end says that no event follows, and why.
func (q *queue) end(err error) {
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	wake(q.changed)
}

// take removes the first event.
func (q *queue) take() {
	q.mu.Lock()
	q.size -= len(q.events[0].text)
	q.events[0] = event{}
	q.events = q.events[1:]
	q.mu.Unlock()
	wake(q.room)
}

// view is what a queue contains.
type view struct {
	// head is the first event, with an empty text if there is none.
	head event
	full bool
	// err is why no event follows those in the queue, and nil if some may.
	err error
}

func (q *queue) look() view {
	q.mu.Lock()
	defer q.mu.Unlock()
	v := view{full: q.size >= q.limit, err: q.err}
	if len(q.events) > 0 {
		v.head = q.events[0]
	}
	return v
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
