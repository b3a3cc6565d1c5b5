// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/local/lifecycle"
	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/probing/exec"
)

// execs runs commands in containers, as processes with the container's environment and
// working directory. It is safe for concurrent use.
type execs struct {
	keeper *process.Keeper
	// containers has the execTarget of each running container by its ID.
	containers sync.Map
}

// execTarget is a container in which commands run.
type execTarget struct {
	spec    process.Spec
	process *process.Process
}

// ending reports whether the container's processes have ended or are being killed.
func (c execTarget) ending() bool {
	select {
	case <-c.process.Ending():
		return true
	default:
		return false
	}
}

var _ exec.Runner = (*execs)(nil)

// running returns a container that runs. It returns false as soon as the main process has ended.
func (e *execs) running(id string) (execTarget, bool) {
	stored, _ := e.containers.Load(id)
	container, found := stored.(execTarget)
	return container, found && !container.ending()
}

func (e *execs) runs(id string) bool {
	_, runs := e.running(id)
	return runs
}

// ExecSync runs a command in a container, and kills its process group at the timeout.
func (e *execs) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) ([]byte, []byte, int32, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return e.run(ctx, id, command)
}

// run runs a command in a container until the command, the container or ctx ends. It returns the output of
// a command that ended by itself or with ctx. A command that was killed with its container has no result: run returns an
// error.
func (e *execs) run(ctx context.Context, id string, command []string) (stdout, stderr []byte, code int32, err error) {
	container, runs := e.running(id)
	if !runs {
		return nil, nil, 0, fmt.Errorf("run %s: container %s is not running", command[0], id)
	}
	out, errs := &exec.Output{}, &exec.Output{}
	spec := container.spec
	spec.Command, spec.Leads, spec.Stdout, spec.Stderr = command, false, out, errs
	running, err := e.keeper.Start(spec)
	if err != nil {
		return nil, nil, 0, err
	}
	if container.ending() {
		// The command may have started after the container's processes were killed.
		running.Kill()
	}
	select {
	case <-running.Done():
	case <-container.process.Ending():
		running.Kill()
		<-running.Done()
	case <-ctx.Done():
		running.Kill()
		<-running.Done()
		return out.Bytes(), errs.Bytes(), 0, fmt.Errorf("run %s: %w", command[0], ctx.Err())
	}
	if container.ending() {
		return nil, nil, 0, fmt.Errorf("run %s: container %s ended", command[0], id)
	}
	return out.Bytes(), errs.Bytes(), running.Exit().Code, nil
}

// runHook runs a hook of a pod and posts its result.
func (l *loop) runHook(ctx context.Context, p *pod, action lifecycle.Action) {
	if action.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, action.Timeout)
		defer cancel()
		ctx = limited
	}
	err := l.execs.hook(ctx, action)
	l.inbox.Post(func(now time.Time) {
		if err != nil && action.Hook.Exec != nil {
			l.failed(now, p, action.Container, append(slices.Clone(action.Hook.Exec.Command), err.Error())...)
		}
		l.act(now, p, p.machine.HookEnded(now, action.Container, action.ID, action.Hook, err))
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
