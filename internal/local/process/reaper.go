// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// setVariable is the variable that the processes of a set inherit.
	setVariable = "SEAMARK_CONTAINER_ID"

	// filesDescriptor is the descriptor of the socket over which a reaper receives files.
	filesDescriptor = 3

	// trackInterval is the interval at which the sets of new processes are recorded.
	trackInterval = 50 * time.Millisecond

	// goneTimeout limits the wait for the killed processes of a set, endTimeout for those of
	// a run. Only a process that hangs in the kernel, or that another user owns, exceeds
	// them. goneInterval is the polling interval.
	goneTimeout  = 2 * time.Second
	endTimeout   = 10 * time.Second
	goneInterval = 2 * time.Millisecond
)

// proc is one process, as the system describes it.
type proc struct {
	pid, parent, group int
	// start is when the process started. With the PID, it identifies the process.
	start uint64
	// zombie is whether the process has ended, but its parent has not waited for it.
	zombie bool
	// set is the set of the process, if it is known.
	set string
}

// child is a process that a reaper has started and not waited for.
type child struct {
	cmd   *exec.Cmd
	pid   int
	set   string
	leads bool
	ended time.Time
}

// reaper starts the processes of a run and ends them. Its exported methods serve a keeper.
type reaper struct {
	files *os.File

	mu       sync.Mutex
	children map[int]*child
	// known are the processes of the last scan.
	known map[int]proc
}

// connection connects a keeper and its reaper.
type connection struct {
	io.Reader
	io.WriteCloser
}

func newReaper() *reaper {
	return &reaper{files: inherited(filesDescriptor), children: map[int]*child{}}
}

// serve serves requests until the connection is closed.
func (r *reaper) serve(keeper connection) {
	server := rpc.NewServer()
	// Fails only if the type does not have the methods that package rpc serves.
	if err := server.RegisterName(service, r); err != nil {
		panic(err)
	}
	server.ServeConn(keeper)
}

// Start starts a process with the output files that the keeper has sent before.
func (r *reaper) Start(spec Spec, pid *int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	output, err := receiveFiles(r.files)
	if err != nil {
		return fmt.Errorf("receive output files: %w", err)
	}
	defer closeAll(output[:]...)
	if err := checkFolder(spec); err != nil {
		return err
	}
	path, err := lookPath(spec)
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{
		Path: path, Args: spec.Command, Dir: spec.Dir, Env: append(spec.Env, setVariable+"="+spec.Set),
		Stdout: output[0], Stderr: output[1], SysProcAttr: ownGroup(),
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", spec.Command[0], cause(err))
	}
	*pid = cmd.Process.Pid
	r.children[*pid] = &child{cmd: cmd, pid: *pid, set: spec.Set, leads: spec.Leads}
	return nil
}

func (r *reaper) child(pid int) *child {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.children[pid]
}

// Wait waits until a process has ended. If the system allows it, the PID is not freed,
// because it also identifies the group.
func (r *reaper) Wait(pid int, _ *struct{}) error {
	c := r.child(pid)
	if !awaitExit(pid) {
		// The exit status is in c.cmd.ProcessState.
		_ = c.cmd.Wait()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.ended = time.Now()
	return nil
}

// End kills the rest of the group and the set of a process that has ended, and frees its PID.
func (r *reaper) End(pid int, exit *Exit) error {
	c := r.child(pid)
	r.mu.Lock()
	r.kill(c)
	signalGroup(pid, syscall.SIGKILL)
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Wait()
	}
	delete(r.children, pid)
	left := r.kill(c)
	r.mu.Unlock()
	for deadline := time.Now().Add(goneTimeout); left && time.Now().Before(deadline); {
		<-time.After(goneInterval)
		r.mu.Lock()
		left = r.kill(c)
		r.mu.Unlock()
	}
	*exit = exitOf(c.cmd.ProcessState, c.ended)
	return nil
}

// Terminate sends SIGTERM to the group of a process.
func (r *reaper) Terminate(pid int, _ *struct{}) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[pid] != nil {
		signalGroup(pid, syscall.SIGTERM)
	}
	return nil
}

// Kill sends SIGKILL to the group of a process, and to the set that it leads.
func (r *reaper) Kill(pid int, _ *struct{}) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.children[pid]; c != nil {
		r.kill(c)
		signalGroup(pid, syscall.SIGKILL)
	}
	return nil
}

// kill sends SIGKILL to the running processes of the group and the set of c, and reports
// whether there were any.
func (r *reaper) kill(c *child) bool {
	found := false
	for _, p := range r.scan() {
		if !p.zombie && (p.group == c.pid || c.leads && p.set == c.set) {
			found = true
			signalProcess(p.pid, syscall.SIGKILL)
		}
	}
	return found
}

// Sets returns the sets of the running processes by their PIDs.
func (r *reaper) Sets(_ struct{}, sets *map[int]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	*sets = map[int]string{}
	for _, p := range r.scan() {
		if !p.zombie {
			(*sets)[p.pid] = p.set
		}
	}
	return nil
}

// track records the sets of processes while they can be known.
func (r *reaper) track() {
	for range time.Tick(trackInterval) {
		r.mu.Lock()
		r.scan()
		r.mu.Unlock()
	}
}

// scan returns the processes of the run, and waits for the orphans that have ended.
func (r *reaper) scan() []proc {
	procs := descendants(os.Getpid())
	r.known = attribute(procs, r.children, r.known, labelOf)
	for _, p := range procs {
		if p.zombie && p.parent == os.Getpid() && r.children[p.pid] == nil {
			reapChild(p.pid)
		}
	}
	return procs
}

// attribute sets the sets of processes, which are ordered so that parents come before their
// children, and returns the processes by PID. A process keeps its set if its parent ends,
// although the system then gives it another parent. A process that was orphaned before it
// was known has the set of its label.
func attribute(procs []proc, children map[int]*child, known map[int]proc, labelOf func(pid int) string) map[int]proc {
	found := map[int]proc{}
	for i := range procs {
		p := &procs[i]
		if c := children[p.pid]; c != nil {
			p.set = c.set
		} else if before := known[p.pid]; before.start == p.start {
			p.set = before.set
		} else {
			p.set = found[p.parent].set
		}
		if p.set == "" {
			p.set = labelOf(p.pid)
		}
		found[p.pid] = *p
	}
	return found
}

// labelOf returns the set in the environment of a process.
func labelOf(pid int) string {
	// The environment of a process that has ended or belongs to another user is empty.
	environment, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		if set, found := strings.CutPrefix(variable, setVariable+"="); found {
			return set
		}
	}
	return ""
}

// killAll kills all processes of the run. No process can start any more.
func (r *reaper) killAll() {
	r.mu.Lock()
	for deadline := time.Now().Add(endTimeout); time.Now().Before(deadline); {
		for _, p := range descendants(os.Getpid()) {
			signalProcess(p.pid, syscall.SIGKILL)
		}
		for pid := range r.children {
			signalGroup(pid, syscall.SIGKILL)
		}
		if !reapChildren() {
			return
		}
		<-time.After(goneInterval)
	}
}
