// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox passes events to a goroutine that owns state: other goroutines post
// functions, and the owner calls them.
package inbox

import (
	"sync"
	"time"
)

// Inbox holds functions that the owner has yet to call. Posting never blocks, so that the
// owner and the goroutines that post never wait for each other.
type Inbox struct {
	now func() time.Time

	mu      sync.Mutex
	pending []func(now time.Time)
	// wake has a token if functions may be pending.
	wake chan struct{}
}

// New returns an empty inbox. It gets the current time from now: time.Now.
func New(now func() time.Time) *Inbox { return &Inbox{now: now, wake: make(chan struct{}, 1)} }

// Post adds a function. It is safe for concurrent use.
func (b *Inbox) Post(handle func(now time.Time)) {
	b.mu.Lock()
	b.pending = append(b.pending, handle)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Wake returns a channel that has a value if functions may be pending.
func (b *Inbox) Wake() <-chan struct{} { return b.wake }

// Deliver calls the pending functions in order. Only the owner calls it.
func (b *Inbox) Deliver() {
	b.mu.Lock()
	pending := b.pending
	b.pending = nil
	b.mu.Unlock()
	for _, handle := range pending {
		handle(b.now())
	}
}
