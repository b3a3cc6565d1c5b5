// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as process groups that end with the program that started
// them, however that ends. A Keeper starts them, and starts first a reaper: the same
// program once more, in a session of its own, that waits at the end of a pipe. When the
// pipe closes, because the keeper was closed or has been killed, the reaper kills what is
// left and removes the run's folder.
//
// Groups are told to the reaper as they come and go. What leaves its group is found by a
// variable that every process of a run inherits, where the system has /proc.
package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	// runVariable is what the processes of a run inherit, with the run's folder as its
	// value: it is unique to the run.
	runVariable = "SEAMARK_RUN"

	// reaperArgument is the first argument of a reaper; the run's folder is the second.
	reaperArgument = "reap-local-run"

	// sweepTimeout bounds how long the reaper looks for what is left.
	sweepTimeout = 10 * time.Second
	// sweepInterval is how soon it looks again for processes that were just killed.
	sweepInterval = 20 * time.Millisecond
)

// Keeper starts processes, and holds them to its own life. Its methods are safe for
// concurrent use.
type Keeper struct {
	folder string
	reaper *exec.Cmd
	lost   chan struct{}

	mu     sync.Mutex
	pipe   io.WriteCloser
	closed bool
}

// NewKeeper makes the run's folder and starts the reaper from the executable, which must
// call Reaper first of all. An empty executable means the running program.
func NewKeeper(executable string) (*Keeper, error) {
	if executable == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running program, to start the reaper: %w", err)
		}
		executable = self
	}
	folder, err := os.MkdirTemp("", "seamark-local-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the run: %w", err)
	}
	k := &Keeper{folder: folder, reaper: exec.Command(executable, reaperArgument, folder), lost: make(chan struct{})}
	k.reaper.Dir = "/"
	k.reaper.SysProcAttr = ownSession()
	if k.pipe, err = k.reaper.StdinPipe(); err == nil {
		err = k.reaper.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the reaper: %w", err), os.RemoveAll(folder))
	}
	go func() {
		defer close(k.lost)
		// Whatever it ended with, it is gone.
		_ = k.reaper.Wait()
	}()
	return k, nil
}

// Folder returns the run's own folder, an absolute path. It is removed with the run.
func (k *Keeper) Folder() string { return k.folder }

// Lost is closed when the reaper has ended. Before Close, that means that nothing holds
// the processes any more.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Close kills every process that is left, removes the run's folder, and returns when both
// are done.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	err := k.pipe.Close()
	k.mu.Unlock()
	<-k.lost
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("tell the reaper to end: %w", err)
	}
	if _, err := os.Stat(k.folder); err == nil {
		// The reaper was killed and has left its work to be done here.
		sweep(map[int]bool{}, k.folder)
		return removeFolder(k.folder)
	}
	return nil
}

// tell tells the reaper of a group that has come (+) or gone (-).
func (k *Keeper) tell(sign string, group int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errors.New("the run has ended")
	}
	if _, err := fmt.Fprintf(k.pipe, "%s%d\n", sign, group); err != nil {
		return fmt.Errorf("tell the reaper of process group %d: %w", group, err)
	}
	return nil
}

// Reaper does a reaper's work and exits, where the program was started as one; else it
// returns at once.
func Reaper() {
	if len(os.Args) != 3 || os.Args[1] != reaperArgument {
		return
	}
	ignoreSignals()
	if err := reap(os.Stdin, os.Args[2]); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// reap follows the groups until the pipe closes, and then kills all that is left.
func reap(pipe io.Reader, folder string) error {
	if !strings.HasPrefix(filepath.Base(folder), "seamark-local-") {
		return fmt.Errorf("%q is no folder of a run", folder)
	}
	groups := map[int]bool{}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		group, err := strconv.Atoi(strings.TrimLeft(lines.Text(), "+-"))
		// Killing the group 0 or 1 would mean ourselves or everybody.
		if err != nil || group <= 1 {
			continue
		}
		if strings.HasPrefix(lines.Text(), "+") {
			groups[group] = true
		} else {
			delete(groups, group)
		}
	}
	sweep(groups, folder)
	return removeFolder(folder)
}

// sweep kills the groups and what carries the run's variable, until nothing does.
func sweep(groups map[int]bool, folder string) {
	for group := range groups {
		signalGroup(group, syscall.SIGKILL)
	}
	deadline := time.Now().Add(sweepTimeout)
	for time.Now().Before(deadline) {
		left := carriers(runVariable + "=" + folder)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			signalProcess(pid, syscall.SIGKILL)
		}
		<-time.After(sweepInterval)
	}
}

// removeFolder removes a run's folder, whatever permissions its files were given.
func removeFolder(folder string) error {
	err := os.RemoveAll(folder)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove the folder of the run: %w", err)
	}
	return nil
}
