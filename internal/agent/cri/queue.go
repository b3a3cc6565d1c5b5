// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventQueue is an unbounded queue of events between the stream and the tracker. It never
// blocks the stream, because containerd waits for its slowest reader before it starts another
// container.
type eventQueue struct {
	mu     sync.Mutex
	events []*runtimeapi.ContainerEventResponse
	err    error
	// ready has a value if the queue is not empty or the stream has ended.
	ready chan struct{}
}

func newEventQueue() *eventQueue { return &eventQueue{ready: make(chan struct{}, 1)} }

// fill adds events from recv until recv fails. It keeps the error.
func (q *eventQueue) fill(recv func() (*runtimeapi.ContainerEventResponse, error)) {
	for {
		event, err := recv()
		q.add(event, err)
		if err != nil {
			return
		}
	}
}

func (q *eventQueue) add(event *runtimeapi.ContainerEventResponse, err error) {
	q.mu.Lock()
	if err != nil {
		q.err = err
	} else {
		q.events = append(q.events, event)
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the events since the last call and the error that ended the stream.
func (q *eventQueue) take() ([]*runtimeapi.ContainerEventResponse, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events = nil
	return events, q.err
}
