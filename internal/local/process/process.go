// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"net/rpc"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// drainTimeout is how long output is read after all processes have ended. Only a
	// process that the run could not find can still write then.
	drainTimeout = time.Second

	// signalBase plus the number of a signal is the exit code of a process that the signal
	// ended, as in shells and container runtimes.
	signalBase = 128
)

// Spec describes a process to start.
type Spec struct {
	// Command is the program and its arguments. A program without a slash is looked up in
	// the PATH of Env.
	Command []string
	// Env is the complete environment, as name=value.
	Env []string
	// Dir is the working directory. Empty means that of the running program.
	Dir string
	// Set identifies processes that belong together, such as a container and the commands
	// that run in it. It must not be empty.
	Set string
	// Leads reports whether the set ends with this process, as a container ends with its
	// main process.
	Leads bool
	// Stdout and Stderr receive the output, each from its own goroutine. If they are
	// io.Closers, they are closed at the end.
	Stdout, Stderr io.Writer
}

// Exit describes how a process ended.
type Exit struct {
	// Code is the exit code. If a signal ended the process, it is 128 plus the number of
	// the signal.
	Code int32
	// Signal is the signal that ended the process, or 0.
	Signal int32
	// At is when the process ended.
	At time.Time
}

// Process is a started process and its group.
type Process struct {
	pid    int
	reaper *rpc.Client
	done   chan struct{}
	exit   Exit

	// ending is closed when the process ends or is killed, before the rest of its set.
	ending chan struct{}
	end    sync.Once
}

// Start starts a process as the leader of a new process group.
func (k *Keeper) Start(spec Spec) (*Process, error) {
	output, err := newOutput(spec)
	if err != nil {
		return nil, err
	}
	p := &Process{reaper: k.reaper, done: make(chan struct{}), ending: make(chan struct{})}
	if p.pid, err = k.startProcess(spec, output); err != nil {
		output.abandon()
		return nil, err
	}
	output.follow()
	go func() {
		defer close(p.done)
		p.exit = p.await()
		output.drain()
	}()
	return p, nil
}

func (k *Keeper) startProcess(spec Spec, output *output) (pid int, err error) {
	spec.Stdout, spec.Stderr = nil, nil
	k.starting.Lock()
	defer k.starting.Unlock()
	if err = sendFiles(k.files, output.writers); err == nil {
		err = k.reaper.Call(service+".Start", spec, &pid)
	}
	return pid, err
}

// await waits until the process, its group and the set that it leads have ended.
func (p *Process) await() Exit {
	err := p.reaper.Call(service+".Wait", p.pid, &struct{}{})
	p.end.Do(func() { close(p.ending) })
	var exit Exit
	if err == nil {
		err = p.reaper.Call(service+".End", p.pid, &exit)
	}
	if err != nil {
		// The reaper has exited. If it was killed, the group may still run.
		for deadline := time.Now().Add(goneTimeout); signalGroup(p.pid, syscall.SIGKILL) && time.Now().Before(deadline); {
			<-time.After(goneInterval)
		}
		exit = Exit{Code: signalBase + int32(syscall.SIGKILL), Signal: int32(syscall.SIGKILL), At: time.Now()}
	}
	return exit
}

// Done is closed when the process, its group and the set that it leads have ended, and all
// output has been written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ending is closed before the rest of the process's set is killed with it. A command that
// ends before that has ended by itself.
func (p *Process) Ending() <-chan struct{} { return p.ending }

// Exit returns how the process ended. Call it only after Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// Terminate sends SIGTERM to the group.
func (p *Process) Terminate() {
	// Fails only if the reaper has exited, which ends the process.
	_ = p.reaper.Call(service+".Terminate", p.pid, &struct{}{})
}

// Kill sends SIGKILL to the group and to the set that the process leads.
func (p *Process) Kill() {
	p.end.Do(func() { close(p.ending) })
	// Fails only if the reaper has exited, which ends the process.
	_ = p.reaper.Call(service+".Kill", p.pid, &struct{}{})
}

// output copies the output of a process to the writers of its spec.
type output struct {
	readers, writers [2]*os.File
	to               [2]io.Writer
	copying          sync.WaitGroup
}

func newOutput(spec Spec) (*output, error) {
	o := &output{to: [2]io.Writer{spec.Stdout, spec.Stderr}}
	for i := range o.readers {
		var err error
		if o.readers[i], o.writers[i], err = os.Pipe(); err != nil {
			o.abandon()
			return nil, fmt.Errorf("create output pipe: %w", err)
		}
	}
	return o, nil
}

// abandon closes the pipes of a process that could not be started.
func (o *output) abandon() {
	for i := range o.readers {
		closeAll(o.readers[i], o.writers[i])
	}
}

// follow copies the output until all writers have closed the pipe.
func (o *output) follow() {
	closeAll(o.writers[0], o.writers[1])
	for i := range o.readers {
		o.copying.Go(func() {
			// The output is read even if it can't be written, so that the process never
			// blocks.
			if _, err := io.Copy(o.to[i], o.readers[i]); err != nil {
				_, _ = io.Copy(io.Discard, o.readers[i])
			}
			if closer, ok := o.to[i].(io.Closer); ok {
				// There is no caller to return an error to.
				_ = closer.Close()
			}
		})
	}
}

// drain waits for the rest of the output.
func (o *output) drain() {
	for _, reader := range o.readers {
		// Pipes support deadlines on all systems with process groups.
		_ = reader.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	o.copying.Wait()
	closeAll(o.readers[0], o.readers[1])
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		if file != nil {
			// Closing a pipe loses no data.
			_ = file.Close()
		}
	}
}
