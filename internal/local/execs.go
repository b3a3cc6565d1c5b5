// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/local/process"
	"github.com/seamark-dev/seamark/internal/probing/exec"
)

// execs runs commands in containers, as processes with the container's environment and
// working directory. It is safe for concurrent use.
type execs struct {
	keeper *process.Keeper

	mu         sync.Mutex
	containers map[string]execTarget
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

func newExecs(keeper *process.Keeper) *execs {
	return &execs{keeper: keeper, containers: map[string]execTarget{}}
}

// put adds a running container.
func (e *execs) put(id string, spec process.Spec, running *process.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.containers[id] = execTarget{spec, running}
}

// remove removes a container that has ended.
func (e *execs) remove(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.containers, id)
}

// runs reports whether a container runs. It is false as soon as its main process has ended.
func (e *execs) runs(id string) bool {
	e.mu.Lock()
	container, found := e.containers[id]
	e.mu.Unlock()
	return found && !container.ending()
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
	e.mu.Lock()
	container, found := e.containers[id]
	e.mu.Unlock()
	if !found || container.ending() {
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
