// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"sync"
	"time"
)

// job is something for the loop to do.
type job func(l *loop, now time.Time)

// mailbox holds what the loop has yet to do. Posting never blocks.
type mailbox struct {
	mu      sync.Mutex
	pending []job
	// wake has a token while something may be pending.
	wake chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post leaves a job for the loop.
func (m *mailbox) post(j job) {
	m.mu.Lock()
	m.pending = append(m.pending, j)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns what is pending, in order.
func (m *mailbox) take() []job {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.pending
	m.pending = nil
	return jobs
}
