// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"sync"

	"github.com/seamark-dev/seamark/internal/local"
)

// feed hands changes from a run, which must not wait, to a display, which may be slow. It
// holds as many as there are.
type feed struct {
	mu      sync.Mutex
	ready   sync.Cond
	changes []local.Change
	ended   bool
}

func newFeed() *feed {
	f := &feed{}
	f.ready.L = &f.mu
	return f
}

func (f *feed) put(change local.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, change)
	f.ready.Signal()
}

// end says that no more changes come.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.ready.Signal()
}

// next waits for changes and returns all that there are; none after the last.
func (f *feed) next() []local.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.changes) == 0 && !f.ended {
		f.ready.Wait()
	}
	return f.take()
}

// Take returns the changes that there are, without waiting, and whether more may come.
func (f *feed) Take() ([]local.Change, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.take(), !f.ended
}

func (f *feed) take() []local.Change {
	changes := f.changes
	f.changes = nil
	return changes
}
