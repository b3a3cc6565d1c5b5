// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// setVariable is the variable that the processes of a set inherit.
	setVariable = "SEAMARK_CONTAINER_ID"

	// drainTimeout is how long output is read after all processes have ended. Only a
	// process that the run could not find can still write then.
	drainTimeout = time.Second

	// goneTimeout limits the wait for killed processes. Only a process that hangs in the
	// kernel exceeds it. goneInterval is the polling interval.
	goneTimeout  = 2 * time.Second
	goneInterval = 2 * time.Millisecond

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
	spec Spec
	pid  int
	// tracker finds the members of the set.
	tracker *tracker
	done    chan struct{}
	exit    Exit

	// ending is closed when the process ends or is killed, before the rest of its set.
	ending chan struct{}
	end    sync.Once

	mu sync.Mutex
	// freed reports whether the process has been waited for, so that the system may reuse
	// its PID.
	freed bool
}

// Start starts a process as the leader of a new process group.
func (k *Keeper) Start(spec Spec) (*Process, error) {
	if err := checkFolder(spec); err != nil {
		return nil, err
	}
	path, err := lookPath(spec)
	if err != nil {
		return nil, err
	}
	if k.isClosed() {
		return nil, errEnded
	}
	cmd := &exec.Cmd{
		Path: path, Args: spec.Command, Dir: spec.Dir, SysProcAttr: ownGroup(),
		Env: append(append([]string{}, spec.Env...), runVariable+"="+k.folder, setVariable+"="+spec.Set),
	}
	output, err := newOutput(cmd, spec)
	if err != nil {
		return nil, err
	}
	err = k.tracker.start(spec.Set, func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		output.abandon()
		return nil, fmt.Errorf("start %s: %w", spec.Command[0], cause(err))
	}
	output.follow()
	p := &Process{spec: spec, pid: cmd.Process.Pid, tracker: k.tracker, done: make(chan struct{}), ending: make(chan struct{})}
	err = k.notify("+", p.pid)
	if err != nil {
		p.Kill()
	}
	go func() {
		defer close(p.done)
		p.exit = p.await(cmd)
		output.drain()
		// Fails only if the reaper has exited, which Lost reports.
		_ = k.notify("-", p.pid)
	}()
	if err != nil {
		return nil, err
	}
	return p, nil
}

// await waits until the process has ended, and then kills the rest of its group and set.
// If the system allows it, this happens before the PID is freed, because the PID also
// identifies the group.
func (p *Process) await(cmd *exec.Cmd) Exit {
	held := awaitExit(p.pid)
	at := time.Now()
	if !held {
		// The exit status is in cmd.ProcessState.
		_ = cmd.Wait()
		at = time.Now()
	}
	p.free(func() {
		if held {
			_ = cmd.Wait()
		}
	})
	for deadline := at.Add(goneTimeout); p.left() && time.Now().Before(deadline); {
		<-time.After(goneInterval)
	}
	if cmd.ProcessState == nil {
		// The program has waited for the process elsewhere.
		return Exit{Code: -1, At: at}
	}
	return exitOf(cmd.ProcessState, at)
}

// free kills the remaining processes and then frees the PID.
func (p *Process) free(wait func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
	p.freed = true
	p.tracker.release(p.pid, wait)
}

// left reports whether a killed process still runs, and kills it again. The PID can't be
// reused while its group exists. A process can also have joined the set during the kill.
func (p *Process) left() bool {
	if groupRuns(p.pid) {
		signalGroup(p.pid, syscall.SIGKILL)
		return true
	}
	return p.spec.Leads && p.killSet()
}

// cause returns the error of the system without the path that the caller names anyway.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.freed {
		signalGroup(p.pid, syscall.SIGTERM)
	}
}

// Kill sends SIGKILL to the group and to the set that the process leads.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.freed {
		p.kill()
	}
}

func (p *Process) kill() {
	p.end.Do(func() { close(p.ending) })
	if p.spec.Leads {
		// The descent of processes is best known before their parents end.
		p.killSet()
	}
	signalGroup(p.pid, syscall.SIGKILL)
	if p.spec.Leads {
		p.killSet()
	}
}

// killSet kills the processes of the set, except for the one that leads it, and reports
// whether there were any.
func (p *Process) killSet() bool {
	pids := append(carriers(setVariable+"="+p.spec.Set), p.tracker.of(p.spec.Set, p.pid)...)
	for _, pid := range pids {
		signalProcess(pid, syscall.SIGKILL)
	}
	return len(pids) > 0
}

// lookPath looks up the program in the PATH of the process's environment.
func lookPath(spec Spec) (string, error) {
	if len(spec.Command) == 0 || spec.Command[0] == "" {
		return "", errors.New("no command")
	}
	name := spec.Command[0]
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	var path string
	for _, variable := range spec.Env {
		if value, found := strings.CutPrefix(variable, "PATH="); found {
			path = value
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			continue
		}
		candidate := filepath.Join(folder, name)
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("start %s: no such program in PATH", name)
}

// checkFolder returns an error if the working directory does not exist. The error of the
// system would appear to be about the program.
func checkFolder(spec Spec) error {
	if spec.Dir == "" || len(spec.Command) == 0 {
		return nil
	}
	info, err := os.Stat(spec.Dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("start %s: working directory %s: %w", spec.Command[0], spec.Dir, cause(err))
	}
	return nil
}

// output copies the output of a process to the writers of its spec.
type output struct {
	readers, writers [2]*os.File
	to               [2]io.Writer
	copying          sync.WaitGroup
}

func newOutput(cmd *exec.Cmd, spec Spec) (*output, error) {
	o := &output{to: [2]io.Writer{spec.Stdout, spec.Stderr}}
	for i := range o.readers {
		var err error
		if o.readers[i], o.writers[i], err = os.Pipe(); err != nil {
			o.abandon()
			return nil, fmt.Errorf("create output pipe of %s: %w", spec.Command[0], err)
		}
	}
	cmd.Stdout, cmd.Stderr = o.writers[0], o.writers[1]
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
