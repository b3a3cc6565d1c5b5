// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// pace is the time between two writes, and attempt how long one may take.
	pace    = 50 * time.Millisecond
	attempt = 2 * time.Second
	// prefix is the beginning of keys.
	prefix = "recipe/"
)

// writer writes the numbers from first upwards until it is stopped, and remembers those that were acknowledged.
type writer struct {
	cancel context.CancelFunc
	done   chan struct{}
	acked  []int
	// times are those of the acknowledgements, and of the begin and the end.
	times []time.Time
	// failed is the number of writes that were not acknowledged, and lastError the reason of the last one.
	failed    int
	lastError error
}

// write starts a client, whose first write has succeeded when it returns. It keeps its connection until a write fails, and then connects
// to the first of the addresses that takes the write. A write that fails is not repeated.
func (s *suite) write(p program, first int, addresses func(context.Context) ([]string, error)) *writer {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	w := &writer{cancel: cancel, done: make(chan struct{})}
	c := &connection{program: p, addresses: addresses}
	s.Eventually("the first write", func(ctx context.Context) error { return c.write(ctx, first) })
	w.acked, w.times = append(w.acked, first), append(w.times, time.Now())
	go func() {
		defer close(w.done)
		defer c.close()
		pace := time.NewTicker(pace)
		defer pace.Stop()
		for number := first + 1; ; number++ {
			select {
			case <-ctx.Done():
				w.times = append(w.times, time.Now())
				return
			case <-pace.C:
			}
			switch err := c.write(ctx, number); {
			case err == nil:
				w.acked, w.times = append(w.acked, number), append(w.times, time.Now())
			case ctx.Err() == nil:
				w.failed, w.lastError = w.failed+1, err
			}
		}
	}()
	s.Cleanup(func() { cancel(); <-w.done })
	return w
}

// connection writes through a session, and opens another one after an error.
type connection struct {
	program
	addresses func(context.Context) ([]string, error)
	session   session
}

func (c *connection) write(ctx context.Context, number int) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	if c.session != nil {
		return c.try(ctx, number)
	}
	addresses, err := c.addresses(ctx)
	if err != nil {
		return err
	}
	err = errors.New("no pod to write to")
	for _, address := range addresses {
		var opened session
		if opened, err = c.open(ctx, address); err != nil {
			continue
		}
		c.session = opened
		if err = c.try(ctx, number); err == nil {
			return nil
		}
	}
	return err
}

func (c *connection) try(ctx context.Context, number int) error {
	err := c.session.write(ctx, number)
	if err == nil {
		err = ctx.Err() // A database may answer a canceled write as if it had succeeded.
	}
	if err != nil {
		c.close()
	}
	return err
}

func (c *connection) close() {
	if c.session != nil {
		_ = c.session.Close()
		c.session = nil
	}
}

// stop ends the client.
func (w *writer) stop() {
	w.cancel()
	<-w.done
}

// missing returns the numbers that were acknowledged and are not found.
func (w *writer) missing(found map[int]bool) []int {
	var missing []int
	for _, number := range w.acked {
		if !found[number] {
			missing = append(missing, number)
		}
	}
	return missing
}

// numbers returns the numbers in the keys.
func numbers(keys []string) (map[int]bool, error) {
	found := map[int]bool{}
	for _, key := range keys {
		number, err := strconv.Atoi(strings.TrimPrefix(key, prefix))
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		found[number] = true
	}
	return found, nil
}
