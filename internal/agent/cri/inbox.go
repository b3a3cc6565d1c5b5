// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// inbox holds events between the stream and the tracker, as many as there are: containerd
// waits for its slowest reader before it starts another container.
type inbox struct {
	mu     sync.Mutex
	events []*runtimeapi.ContainerEventResponse
	err    error
	// ready has a value when there is something to take.
	ready chan struct{}
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// fill moves events from recv into the inbox until recv fails, which it keeps too.
func (b *inbox) fill(recv func() (*runtimeapi.ContainerEventResponse, error)) {
	for {
		event, err := recv()
		b.add(event, err)
		if err != nil {
			return
		}
	}
}

func (b *inbox) add(event *runtimeapi.ContainerEventResponse, err error) {
	b.mu.Lock()
	if err != nil {
		b.err = err
	} else {
		b.events = append(b.events, event)
	}
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns what has come in since the last call, and the error that ended the stream.
func (b *inbox) take() ([]*runtimeapi.ContainerEventResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	events := b.events
	b.events = nil
	return events, b.err
}
