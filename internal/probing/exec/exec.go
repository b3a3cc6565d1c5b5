// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exec runs exec probes through the container runtime, a bounded number at a
// time, which namespaces and pods share fairly. It evaluates results as the kubelet does.
//
// A runtime may never end a run, for example because a process that the command started
// keeps its output open. Such a run gives its slot back after the timeout, and the command
// does not run again until the runtime has ended the run, or after a long delay.
package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/slots"
)

// overrun is how long the runtime may take beyond the timeout to end a command and return.
// If it takes longer, the probe counts as timed out and does not block the worker.
const overrun = time.Second

// starting is how long the runtime may take to start a command. containerd leaves a command running for
// good whose call is canceled while it starts, so no call is canceled earlier, except by Close.
const starting = 5 * time.Second

// Runner runs a command in a container.
type Runner interface {
	// ExecSync runs the command and returns its output and exit code. If the command
	// exceeds the timeout, the error wraps context.DeadlineExceeded. Any other error leaves
	// the result unknown. ExecSync returns when the runtime has ended the run, however long
	// that takes, or when ctx ends.
	ExecSync(ctx context.Context, containerID string, command []string, timeout time.Duration) (stdout, stderr []byte, exitCode int32, err error)
}

// Observer receives what happens to runs. It is called from many goroutines at once.
type Observer interface {
	// Waited receives the time that a run spent in the queue.
	Waited(d time.Duration)
	// Unended receives a run that the runtime had not ended when it was given up.
	Unended()
}

// Prober runs commands in containers. It has a fixed number of slots; commands that find
// no free slot wait.
type Prober struct {
	runner   Runner
	observer Observer
	gate     *slots.Gate
	unended  unended
	// closed is closed when the prober is.
	closed chan struct{}
	close  sync.Once
}

var _ probing.Prober = (*Prober)(nil)

// New returns a prober that runs at most concurrency commands at a time, at least one. The
// observer may be nil. The caller must close the prober.
func New(runner Runner, concurrency int, observer Observer) *Prober {
	var waited func(time.Duration)
	if observer != nil {
		waited = observer.Waited
	}
	return &Prober{
		runner:   runner,
		observer: observer,
		gate:     slots.New(concurrency, waited),
		unended:  unended{namespaces: map[string]int{}, by: map[runID]*backlog{}},
		closed:   make(chan struct{}),
	}
}

// Close cancels all runs, including those that were given up.
func (p *Prober) Close() { p.close.Do(func() { close(p.closed) }) }

// Queued returns how many probes are waiting for a free slot.
func (p *Prober) Queued() int { return p.gate.Queued() }

// Unended returns how many runs were given up and have not been ended by the runtime.
func (p *Prober) Unended() int { return p.unended.count() }

// Probe waits for a free slot, which does not count against the timeout, and runs the
// command once. Exit code 0 is success. The message is the command's output, stdout before
// stderr, for any exit code. A timeout is a failure. If the runtime cannot run the command
// at all, the result is unknown and Probe returns an error, as the kubelet does: because
// the container is stopping, the connection is lost or the program does not exist.
//
// While the runtime has not ended the last run of the command, Probe does not run it again:
// the outcome is another timeout with NotEnded set. While it has not ended too many commands of the namespace,
// no command of the namespace runs, and the results are unknown.
func (p *Prober) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	id := idOf(target)
	if p.unended.blocked(time.Now(), id) {
		outcome := timedOut(target, nil, nil)
		outcome.NotEnded = true
		return outcome, nil
	}
	release, err := p.gate.Acquire(ctx, target.Owner)
	if err != nil {
		return probing.Outcome{}, fmt.Errorf("wait to run command in container %s: %w", target.ContainerID, err)
	}
	if err := p.unended.full(target.Owner.Namespace); err != nil {
		release()
		return probing.Outcome{}, fmt.Errorf("run command in container %s: %w", target.ContainerID, err)
	}
	if target.Started != nil {
		target.Started()
	}
	return p.run(ctx, id, target, release)
}

// result is what ExecSync returned.
type result struct {
	stdout, stderr []byte
	exitCode       int32
	err            error
	took           time.Duration
}

// run runs the command, and gives the run up if the runtime does not end it. It calls release when the
// slot of the run is free, which is after it returns if ctx ends while the runtime starts the command.
func (p *Prober) run(ctx context.Context, id runID, target probing.Target, release func()) (probing.Outcome, error) {
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	began := time.Now()
	results := make(chan result, 1)
	ended := make(chan struct{})
	go func() {
		defer cancel()
		defer close(ended)
		var r result
		r.stdout, r.stderr, r.exitCode, r.err = p.runner.ExecSync(callCtx, target.ContainerID, target.Exec.Command, target.Timeout)
		r.took = time.Since(began)
		results <- r
	}()
	limit := time.NewTimer(target.Timeout + overrun)
	defer limit.Stop()
	select {
	case r := <-results:
		release()
		return r.outcome(target)
	case <-ctx.Done():
		go func() {
			defer release()
			p.cancel(began.Add(starting), cancel, ended)
		}()
		return probing.Outcome{}, fmt.Errorf("run command in container %s: %w", target.ContainerID, context.Cause(ctx))
	case <-p.closed:
		cancel()
		release()
		return probing.Outcome{}, fmt.Errorf("run command in container %s: prober is closed", target.ContainerID)
	case <-limit.C:
		release()
	}
	over := p.unended.add(time.Now(), id)
	go func() {
		select {
		case <-ended:
		case <-p.closed:
			cancel()
			<-ended
		}
		over()
	}()
	if p.observer != nil {
		p.observer.Unended()
	}
	return timedOut(target, nil, nil), nil
}

// cancel cancels a call that has not ended by then, and returns when it has.
func (p *Prober) cancel(at time.Time, cancel func(), ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-p.closed:
	case <-time.After(time.Until(at)):
	}
	cancel()
	<-ended
}

// outcome evaluates a run that has ended.
func (r result) outcome(target probing.Target) (probing.Outcome, error) {
	switch {
	case errors.Is(r.err, context.DeadlineExceeded):
		return timedOut(target, r.stdout, r.stderr), nil
	case r.err != nil:
		return probing.Outcome{}, fmt.Errorf("run command in container %s: %w", target.ContainerID, r.err)
	case target.Timeout%time.Second != 0 && r.took > target.Timeout:
		// Runtimes take whole seconds. They alone decide about timeouts of whole seconds, as with the kubelet.
		return timedOut(target, r.stdout, r.stderr), nil
	}
	return evaluate(r.stdout, r.stderr, r.exitCode), nil
}

// timedOut returns the outcome of a run that exceeded its timeout.
func timedOut(target probing.Target, stdout, stderr []byte) probing.Outcome {
	reason := fmt.Appendf(nil, "timed out after %s", target.Timeout)
	return probing.Outcome{TimedOut: true, Message: probing.Message(reason, stdout, stderr)}
}

func evaluate(stdout, stderr []byte, exitCode int32) probing.Outcome {
	message := probing.Message(stdout, stderr)
	if exitCode != 0 && message == "" {
		message = fmt.Sprintf("exited with code %d", exitCode)
	}
	return probing.Outcome{Success: exitCode == 0, Message: message}
}

// MaxOutputBytes is how much of each stream of a command is kept.
const MaxOutputBytes = 10 << 10

// Output keeps the beginning of a stream of a command. It is safe for concurrent use: a stream may
// still be written to while the command is given up. The zero Output is empty.
type Output struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// Write never fails, so that a command can write more than is kept.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := MaxOutputBytes - o.kept.Len(); room > 0 {
		o.kept.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Bytes returns a copy of what is kept.
func (o *Output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.kept.Bytes())
}
