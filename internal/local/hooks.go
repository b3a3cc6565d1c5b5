// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
)

// hookRun is a hook to run in a container of a pod.
type hookRun struct {
	pod    *pod
	action lifecycle.Action
}

// serveHooks runs each requested hook in a goroutine. When ctx ends, it waits for them and
// returns.
func (c *containers) serveHooks(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-c.hooks:
			running.Go(func() { c.runHook(ctx, h) })
		}
	}
}

// runHook runs a hook and posts its result.
func (c *containers) runHook(ctx context.Context, h hookRun) {
	if h.action.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, h.action.Timeout)
		defer cancel()
		ctx = limited
	}
	err := c.execs.hook(ctx, h.action)
	c.inbox.Post(func(now time.Time) {
		c.act(now, h.pod, h.pod.machine.HookEnded(now, h.action.Container, h.action.ID, h.action.Hook, err))
	})
}

// hook runs a hook until it or ctx ends. A command also ends with its container.
func (e *execs) hook(ctx context.Context, action lifecycle.Action) error {
	if action.Hook.Sleep != nil {
		timer := time.NewTimer(time.Duration(action.Hook.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("sleep: %w", context.Cause(ctx))
		}
	}
	_, _, code, err := e.run(ctx, action.ID, action.Hook.Exec.Command)
	if err == nil && code != 0 {
		err = fmt.Errorf("exited with code %d", code)
	}
	return err
}
