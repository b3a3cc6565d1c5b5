// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"sync"
	"time"
)

// inbox holds the functions that the loop has yet to call. Posting never blocks.
type inbox struct {
	mu      sync.Mutex
	pending []func(now time.Time)
	// wake has a token if functions may be pending.
	wake chan struct{}
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// post makes the loop call a function.
func (b *inbox) post(handle func(now time.Time)) {
	b.mu.Lock()
	b.pending = append(b.pending, handle)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns the pending functions in order.
func (b *inbox) take() []func(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := b.pending
	b.pending = nil
	return pending
}
