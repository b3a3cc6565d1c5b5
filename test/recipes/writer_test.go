// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// writer writes numbers from 0 upwards until it is stopped, and remembers those that were acknowledged.
type writer struct {
	cancel context.CancelFunc
	done   chan struct{}
	acked  []int
	// failed is the number of writes that were not acknowledged, and lastError the reason of the last one.
	failed    int
	lastError error
}

// write starts a writer, whose first write has succeeded when it returns. A write that fails is not repeated.
func (s *suite) write(write func(ctx context.Context, number int) error) *writer {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	w := &writer{cancel: cancel, done: make(chan struct{})}
	s.Eventually("the first write", func(ctx context.Context) error { return write(ctx, 0) })
	w.acked = append(w.acked, 0)
	go func() {
		defer close(w.done)
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for number := 1; ; number++ {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			switch err := write(ctx, number); {
			case err == nil:
				w.acked = append(w.acked, number)
			case ctx.Err() == nil:
				w.failed, w.lastError = w.failed+1, err
			}
		}
	}()
	s.Cleanup(func() { cancel(); <-w.done })
	return w
}

// stop ends the writer and returns the numbers that were acknowledged.
func (w *writer) stop() []int {
	w.cancel()
	<-w.done
	return w.acked
}

// prefix is the beginning of the keys that tests write.
const prefix = "recipe/"

// numbers returns the numbers in the keys.
func numbers(s *suite, keys []string) map[int]bool {
	found := map[int]bool{}
	for _, key := range keys {
		number, err := strconv.Atoi(strings.TrimPrefix(key, prefix))
		cluster.Must(s, err)
		found[number] = true
	}
	return found
}

// missing returns the numbers that were acknowledged and are not found.
func missing(acked []int, found map[int]bool) []int {
	var out []int
	for _, number := range acked {
		if !found[number] {
			out = append(out, number)
		}
	}
	return out
}
