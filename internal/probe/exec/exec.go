// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exec runs exec probes through the container runtime, a bounded number at a
// time, judged as the kubelet judges its own.
package exec

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/seamark-dev/seamark/internal/probe"
)

// overrun is how long the runtime may take beyond the timeout to end a command and say
// so. A runtime that takes longer has timed out too, and no longer holds the worker.
const overrun = time.Second

// Runner runs a command in a container.
type Runner interface {
	// ExecSync runs the command and returns what it wrote and how it exited. The runtime
	// ends the command after the timeout, of which the error wraps
	// context.DeadlineExceeded; so it does when ctx reaches its deadline while the runtime
	// is at work. Every other error says nothing of the container.
	ExecSync(ctx context.Context, containerID string, command []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error)
}

// Prober runs commands in containers, as many at a time as it is made for. Those that
// find no place wait in the order in which they came.
type Prober struct {
	runner Runner
	places *semaphore.Weighted
	waited func(time.Duration)
	queued atomic.Int64
}

var _ probe.Prober = (*Prober)(nil)

// New returns a prober that runs at most concurrency commands at a time, at least one.
// It calls waited, where that is not nil, with the time that each command spent in the
// queue, from many goroutines at once.
func New(runner Runner, concurrency int, waited func(time.Duration)) *Prober {
	return &Prober{
		runner: runner,
		places: semaphore.NewWeighted(int64(max(concurrency, 1))),
		waited: waited,
	}
}

// Queued returns how many probes wait for their turn now.
func (p *Prober) Queued() int { return int(p.queued.Load()) }

// Probe waits for its turn, which does not count against the timeout, and runs the
// command once. Exit code 0 is success. What the command wrote, stdout before stderr, is
// the message either way. A timeout is a failure. A runtime that could not run the
// command at all is an error: a container that is going, a connection that is lost, and
// also a program that is not there, of all of which the kubelet too concludes nothing.
func (p *Prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	if err := p.acquire(ctx); err != nil {
		return probe.Outcome{}, fmt.Errorf("wait to run a command in container %s: %w", target.ContainerID, err)
	}
	defer p.places.Release(1)

	runCtx, cancel := context.WithTimeout(ctx, target.Timeout+overrun)
	defer cancel()
	stdout, stderr, exitCode, err := p.runner.ExecSync(runCtx, target.ContainerID, target.Exec.Command, target.Timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return probe.Outcome{}, fmt.Errorf("run a command in container %s: %w", target.ContainerID, context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded):
		why := fmt.Appendf(nil, "timed out after %s", target.Timeout)
		return probe.Outcome{TimedOut: true, Message: probe.Message(why, stdout, stderr)}, nil
	case err != nil:
		return probe.Outcome{}, fmt.Errorf("run a command in container %s: %w", target.ContainerID, err)
	}
	return judge(stdout, stderr, exitCode), nil
}

// acquire takes a place. The error says why ctx ended while it waited.
func (p *Prober) acquire(ctx context.Context) error {
	start := time.Now()
	p.queued.Add(1)
	err := p.places.Acquire(ctx, 1)
	p.queued.Add(-1)
	if p.waited != nil {
		p.waited(time.Since(start))
	}
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// judge makes an outcome of a command that has ended.
func judge(stdout, stderr []byte, exitCode int32) probe.Outcome {
	message := probe.Message(stdout, stderr)
	if exitCode != 0 && message == "" {
		message = fmt.Sprintf("exited with code %d", exitCode)
	}
	return probe.Outcome{Success: exitCode == 0, Message: message}
}
