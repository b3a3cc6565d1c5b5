// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"sync"

	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/local"
)

// feed is an unbounded queue of changes. The run adds changes without blocking; the display
// may be slow.
type feed struct {
	mu      sync.Mutex
	ready   sync.Cond
	changes []local.Change
	stage   table.Stage
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

// setStage records the stage of the run.
func (f *feed) setStage(stage table.Stage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stage = stage
	f.ready.Signal()
}

// next waits for changes and returns all of them. It returns none after the end of the run.
func (f *feed) next() []local.Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.changes) == 0 && f.stage != table.Ended {
		f.ready.Wait()
	}
	return f.take()
}

// poll returns the queued changes, without waiting, and the stage of the run.
func (f *feed) poll() ([]local.Change, table.Stage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.take(), f.stage
}

func (f *feed) take() []local.Change {
	changes := f.changes
	f.changes = nil
	return changes
}
