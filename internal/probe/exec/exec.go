// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exec runs exec probes through the container runtime, a bounded number at a
// time. It evaluates results as the kubelet does.
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

// overrun is how long the runtime may take beyond the timeout to end a command and return.
// If it takes longer, the probe counts as timed out and does not block the worker.
const overrun = time.Second

// Runner runs a command in a container.
type Runner interface {
	// ExecSync runs the command and returns its output and exit code. If the command
	// exceeds the timeout, or ctx its deadline during the call, the error wraps
	// context.DeadlineExceeded. Any other error leaves the result unknown.
	ExecSync(ctx context.Context, containerID string, command []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error)
}

// Prober runs commands in containers. It has a fixed number of slots; commands that find
// no free slot wait in the order of their arrival.
type Prober struct {
	runner Runner
	slots  *semaphore.Weighted
	waited func(time.Duration)
	queued atomic.Int64
}

var _ probe.Prober = (*Prober)(nil)

// New returns a prober that runs at most concurrency commands at a time, at least one.
// Unless waited is nil, the prober calls it with the time that each command spent in the
// queue, from many goroutines at once.
func New(runner Runner, concurrency int, waited func(time.Duration)) *Prober {
	return &Prober{
		runner: runner,
		slots:  semaphore.NewWeighted(int64(max(concurrency, 1))),
		waited: waited,
	}
}

// Queued returns how many probes are waiting for a free slot.
func (p *Prober) Queued() int { return int(p.queued.Load()) }

// Probe waits for a free slot, which does not count against the timeout, and runs the
// command once. Exit code 0 is success. The message is the command's output, stdout before
// stderr, for any exit code. A timeout is a failure. If the runtime cannot run the command
// at all, the result is unknown and Probe returns an error, as the kubelet does: because
// the container is stopping, the connection is lost or the program does not exist.
func (p *Prober) Probe(ctx context.Context, target probe.Target) (probe.Outcome, error) {
	if err := p.acquire(ctx); err != nil {
		return probe.Outcome{}, fmt.Errorf("wait to run command in container %s: %w", target.ContainerID, err)
	}
	defer p.slots.Release(1)

	runCtx, cancel := context.WithTimeout(ctx, target.Timeout+overrun)
	defer cancel()
	stdout, stderr, exitCode, err := p.runner.ExecSync(runCtx, target.ContainerID, target.Exec.Command, target.Timeout)
	switch {
	case err != nil && ctx.Err() != nil:
		return probe.Outcome{}, fmt.Errorf("run command in container %s: %w", target.ContainerID, context.Cause(ctx))
	case errors.Is(err, context.DeadlineExceeded):
		reason := fmt.Appendf(nil, "timed out after %s", target.Timeout)
		return probe.Outcome{TimedOut: true, Message: probe.Message(reason, stdout, stderr)}, nil
	case err != nil:
		return probe.Outcome{}, fmt.Errorf("run command in container %s: %w", target.ContainerID, err)
	}
	return evaluate(stdout, stderr, exitCode), nil
}

// acquire waits for a free slot. The error is the cause of the end of ctx.
func (p *Prober) acquire(ctx context.Context) error {
	start := time.Now()
	p.queued.Add(1)
	err := p.slots.Acquire(ctx, 1)
	p.queued.Add(-1)
	if p.waited != nil {
		p.waited(time.Since(start))
	}
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// evaluate returns the outcome of a command that has exited.
func evaluate(stdout, stderr []byte, exitCode int32) probe.Outcome {
	message := probe.Message(stdout, stderr)
	if exitCode != 0 && message == "" {
		message = fmt.Sprintf("exited with code %d", exitCode)
	}
	return probe.Outcome{Success: exitCode == 0, Message: message}
}
