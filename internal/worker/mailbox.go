// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"sync"
	"time"
)

// mailbox holds what the loop has yet to do. Posting never blocks: what calls the worker
// must not wait for it, nor it for them.
type mailbox struct {
	mu      sync.Mutex
	pending []func(now time.Time)
	// wake has a token while something may be pending.
	wake chan struct{}
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1)}
}

// post leaves a job for the loop.
func (m *mailbox) post(job func(now time.Time)) {
	m.mu.Lock()
	m.pending = append(m.pending, job)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// deliver does what is pending, in order. Only the loop calls it.
func (m *mailbox) deliver() {
	m.mu.Lock()
	jobs := m.pending
	m.pending = nil
	m.mu.Unlock()
	for _, job := range jobs {
		job(time.Now())
	}
}
