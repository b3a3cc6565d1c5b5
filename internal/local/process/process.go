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
	// setVariable is what the processes of one set inherit.
	setVariable = "SEAMARK_CONTAINER_ID"

	// drainTimeout is how long output is read on after all processes have ended: only
	// what has hidden from its run can still write.
	drainTimeout = time.Second

	// goneTimeout bounds the wait for what was killed, which only a process that hangs in
	// the kernel outlasts; goneInterval is how often it is looked for.
	goneTimeout  = 2 * time.Second
	goneInterval = 2 * time.Millisecond

	// signalBase is added to the number of the signal that ended a process, for its exit
	// code, as shells and container runtimes do.
	signalBase = 128
)

// Spec is what to start.
type Spec struct {
	// Command is the program and its arguments. A program without a slash is looked for
	// in the PATH of Env.
	Command []string
	// Env is the whole environment, as name=value.
	Env []string
	// Dir is the working directory; empty means that of the running program.
	Dir string
	// Set names what belongs together, such as a container and the commands that run in
	// it. It is not empty.
	Set string
	// Leads is whether the set ends with this process, as a container does with its first.
	Leads bool
	// Stdout and Stderr take the output, each from a goroutine of its own. At the end they
	// are closed, where they are io.Closers.
	Stdout, Stderr io.Writer
}

// Exit is how a process ended.
type Exit struct {
	// Code is its exit code: 128 and the number of the signal where one ended it.
	Code int32
	// Signal is the signal that ended it, or 0.
	Signal int32
	// At is when.
	At time.Time
}

// Process is a started process and its group.
type Process struct {
	spec Spec
	pid  int
	done chan struct{}
	exit Exit

	// ending is closed once the process ends or is killed, before anything else of its set.
	ending chan struct{}
	end    sync.Once

	mu sync.Mutex
	// freed is whether the process has been waited for, and its number may be another's.
	freed bool
}

// Start starts a process as the leader of a group of its own. The error says why it could
// not be started.
func (k *Keeper) Start(spec Spec) (*Process, error) {
	if err := checkFolder(spec); err != nil {
		return nil, err
	}
	path, err := lookPath(spec)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: path, Args: spec.Command, Dir: spec.Dir, SysProcAttr: ownGroup(),
		Env: append(append([]string{}, spec.Env...), runVariable+"="+k.folder, setVariable+"="+spec.Set),
	}
	output, err := newOutput(cmd, spec)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		output.abandon()
		return nil, fmt.Errorf("start %s: %w", spec.Command[0], plain(err))
	}
	output.follow()
	p := &Process{spec: spec, pid: cmd.Process.Pid, done: make(chan struct{}), ending: make(chan struct{})}
	err = k.tell("+", p.pid)
	if err != nil {
		p.Kill()
	}
	go func() {
		defer close(p.done)
		p.exit = p.await(cmd)
		output.drain()
		// A reaper that is gone needs no news; whoever watches Lost is told.
		_ = k.tell("-", p.pid)
	}()
	if err != nil {
		return nil, err
	}
	return p, nil
}

// await waits until the process has ended, and then ends what it has left behind. Where
// the system lets it, it does so before it frees the process's number, by which the group
// is known.
func (p *Process) await(cmd *exec.Cmd) Exit {
	held := awaitExit(p.pid)
	at := time.Now()
	if !held {
		// What it ended with is in the state.
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
	return exitOf(cmd.ProcessState, at)
}

// free kills what is left, and then lets the number go.
func (p *Process) free(wait func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
	p.freed = true
	wait()
}

// left tells whether anything of what was killed still runs. While there is something in
// the group, its number is nobody else's; what is new in the set has come too late to be
// killed with it.
func (p *Process) left() bool {
	if groupRuns(p.pid) {
		signalGroup(p.pid, syscall.SIGKILL)
		return true
	}
	return p.spec.Leads && killSet(p.spec.Set)
}

// plain takes an error of the system out of what repeats the command.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Done is closed when the process has ended, nothing is left of its group, nor of its set
// where it leads one, and all output has been handed over.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ending is closed before anything that belongs to the process's set is killed with it: a
// command whose set is not ending has ended by itself.
func (p *Process) Ending() <-chan struct{} { return p.ending }

// Exit returns how the process ended. It is called after Done.
func (p *Process) Exit() Exit { return p.exit }

// Terminate asks the whole group to end.
func (p *Process) Terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.freed {
		signalGroup(p.pid, syscall.SIGTERM)
	}
}

// Kill ends the whole group and, where the process leads its set, the set.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.freed {
		p.kill()
	}
}

func (p *Process) kill() {
	p.end.Do(func() { close(p.ending) })
	signalGroup(p.pid, syscall.SIGKILL)
	if p.spec.Leads {
		killSet(p.spec.Set)
	}
}

// killSet kills what runs of a set, and tells whether there was anything.
func killSet(set string) bool {
	pids := carriers(setVariable + "=" + set)
	for _, pid := range pids {
		signalProcess(pid, syscall.SIGKILL)
	}
	return len(pids) > 0
}

// lookPath finds the program as the started process would: in the PATH that it is given.
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

// checkFolder says that the working directory is what is missing: the system's own error
// would seem to speak of the program.
func checkFolder(spec Spec) error {
	if spec.Dir == "" || len(spec.Command) == 0 {
		return nil
	}
	info, err := os.Stat(spec.Dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("start %s: working directory %s: %w", spec.Command[0], spec.Dir, plain(err))
	}
	return nil
}

// output carries what a process writes to its spec's writers.
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
			return nil, fmt.Errorf("make a pipe for the output of %s: %w", spec.Command[0], err)
		}
	}
	cmd.Stdout, cmd.Stderr = o.writers[0], o.writers[1]
	return o, nil
}

// abandon closes the pipes of a process that never was.
func (o *output) abandon() {
	for i := range o.readers {
		closeAll(o.readers[i], o.writers[i])
	}
}

// follow reads what the process writes, until nobody can write any more.
func (o *output) follow() {
	closeAll(o.writers[0], o.writers[1])
	for i := range o.readers {
		o.copying.Go(func() {
			// A writer that fails loses the rest; the process must not hang on it.
			if _, err := io.Copy(o.to[i], o.readers[i]); err != nil {
				_, _ = io.Copy(io.Discard, o.readers[i])
			}
			if closer, ok := o.to[i].(io.Closer); ok {
				// The process has ended, and nobody asks its output for errors.
				_ = closer.Close()
			}
		})
	}
}

// drain waits for the last of the output.
func (o *output) drain() {
	for _, reader := range o.readers {
		// Pipes have deadlines on all systems that have process groups.
		_ = reader.SetReadDeadline(time.Now().Add(drainTimeout))
	}
	o.copying.Wait()
	closeAll(o.readers[0], o.readers[1])
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		if file != nil {
			// Nothing is lost with a pipe.
			_ = file.Close()
		}
	}
}
