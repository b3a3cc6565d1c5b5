// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs as process groups that do not outlive the program that
// started them, even if that program is killed. A Keeper starts the programs. First it
// starts a reaper: a second instance of its own program, in a separate session, that reads
// from a pipe. When the pipe closes, because the keeper was closed or was killed, the
// reaper kills the remaining processes and removes the run's folder.
//
// The keeper sends the reaper the process groups as they start and end. On Linux, it also
// finds processes that have left their group: by an environment variable that every process
// of a run inherits, and by their descent. The keeper makes its program a child subreaper, so
// that all processes of a run remain its descendants, scans them at an interval, and sends
// the reaper those that it finds.
//
// A process that has left its group, its session and its environment can remain in two cases
// only. Both require that its parent ended before a scan found it. First, the program is
// killed within two intervals (see trackInterval) after the start of the process. Second, the
// keeper can't know whether it belongs to the run: the program is the first process of its
// PID namespace, has another Keeper, or has child processes that the keeper did not start.
// The keeper never kills a process that may belong to something else.
package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// runVariable is the variable that the processes of a run inherit. Its value is the
	// run's folder, which is unique to the run.
	runVariable = "SEAMARK_RUN"

	// reaperArgument is the first argument of a reaper. The second is the run's folder.
	reaperArgument = "reap-local-run"

	// sweepTimeout limits how long the reaper looks for remaining processes.
	sweepTimeout = 10 * time.Second
	// sweepInterval is the interval at which it looks for them.
	sweepInterval = 20 * time.Millisecond
)

// Keeper starts processes that do not outlive it. Its methods are safe for concurrent use.
type Keeper struct {
	folder string
	reaper *exec.Cmd
	lost   chan struct{}
	// tracker finds the processes of the run. tracking ends when Close closes done.
	tracker  *tracker
	done     chan struct{}
	tracking sync.WaitGroup
	// ended and counted make Close idempotent.
	ended, counted sync.Once

	mu     sync.Mutex
	pipe   io.WriteCloser
	closed bool
}

// NewKeeper creates the run's folder and starts the reaper from the executable, which must
// call Reaper before anything else. An empty executable means the running program.
func NewKeeper(executable string) (*Keeper, error) {
	if executable == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find executable of the reaper: %w", err)
		}
		executable = self
	}
	folder, err := os.MkdirTemp("", "seamark-local-")
	if err != nil {
		return nil, fmt.Errorf("create folder of the run: %w", err)
	}
	k := &Keeper{folder: folder, reaper: exec.Command(executable, reaperArgument, folder), lost: make(chan struct{}), done: make(chan struct{})}
	k.tracker = newTracker(folder, k.notifyMember)
	keeperOpened()
	k.tracker.recordOutsiders()
	adoptOrphans()
	k.reaper.Dir = "/"
	k.reaper.SysProcAttr = ownSession()
	if k.pipe, err = k.reaper.StdinPipe(); err == nil {
		err = k.reaper.Start()
	}
	if err != nil {
		keeperClosed()
		return nil, errors.Join(fmt.Errorf("start reaper: %w", err), os.RemoveAll(folder))
	}
	k.tracker.reaper = k.reaper.Process.Pid
	go func() {
		defer close(k.lost)
		// The exit status does not matter.
		_ = k.reaper.Wait()
	}()
	k.tracking.Go(k.track)
	return k, nil
}

// track records the processes of the run until it ends.
func (k *Keeper) track() {
	ticker := time.NewTicker(trackInterval)
	defer ticker.Stop()
	for {
		select {
		case <-k.done:
			return
		case <-ticker.C:
			k.tracker.scan()
		}
	}
}

// Folder returns the absolute path of the run's folder. Close removes it.
func (k *Keeper) Folder() string { return k.folder }

// Lost is closed when the reaper has exited. If that happens before Close, the processes
// could outlive the run.
func (k *Keeper) Lost() <-chan struct{} { return k.lost }

// Close kills the remaining processes and removes the run's folder. It returns when both
// are done.
func (k *Keeper) Close() error {
	k.ended.Do(func() { close(k.done) })
	k.tracking.Wait()
	k.tracker.scan()
	k.mu.Lock()
	k.closed = true
	err := k.pipe.Close()
	k.mu.Unlock()
	<-k.lost
	defer k.counted.Do(keeperClosed)
	defer k.tracker.killLeft()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close pipe of the reaper: %w", err)
	}
	if _, err := os.Stat(k.folder); err == nil {
		// The reaper was killed before it could do this.
		sweep(map[int]bool{}, k.tracker.starts(), k.folder)
		return removeFolder(k.folder)
	}
	return nil
}

// errEnded is the error of a Keeper that has been closed.
var errEnded = errors.New("run has ended")

func (k *Keeper) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// notify tells the reaper that a group has started (+) or ended (-).
func (k *Keeper) notify(sign string, group int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errEnded
	}
	if _, err := fmt.Fprintf(k.pipe, "%s%d\n", sign, group); err != nil {
		return fmt.Errorf("notify reaper of process group %d: %w", group, err)
	}
	return nil
}

// PIDs returns the running processes of the sets that match: their descendants, and the
// processes that carry their variable. It returns none on systems without /proc. A process
// of unknown origin is in no set; see Undecided.
func (k *Keeper) PIDs(match func(set string) bool) []int {
	procs := k.tracker.scan()
	members := k.tracker.all()
	var pids []int
	for _, p := range procs {
		set := members[p.pid].set
		if set == "" {
			set = setOf(p.pid, k.folder)
		}
		if set != "" && !p.zombie && match(set) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// Undecided reports whether a process may belong to the run, although its set is not known.
func (k *Keeper) Undecided(pid int) bool {
	return k.tracker.undecided(pid) && setOf(pid, k.folder) == ""
}

// notifyMember tells the reaper that a process was found (=) or has ended (~).
func (k *Keeper) notifyMember(pid int, member member, found bool) {
	sign := "~"
	if found {
		sign = "="
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		// Fails only if the reaper has exited, which Lost reports.
		_, _ = fmt.Fprintf(k.pipe, "%s%d %d\n", sign, pid, member.start)
	}
}

// Reaper runs the reaper and exits if the program was started as one. Otherwise it returns
// at once.
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

// reap reads the groups from the pipe until it closes, and then kills the remaining
// processes.
func reap(pipe io.Reader, folder string) error {
	if !strings.HasPrefix(filepath.Base(folder), "seamark-local-") {
		return fmt.Errorf("%q is not the folder of a run", folder)
	}
	groups, members := map[int]bool{}, map[int]uint64{}
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		number, start, _ := strings.Cut(strings.TrimLeft(lines.Text(), "+-=~"), " ")
		pid, err := strconv.Atoi(number)
		// Signals to -0 would reach the reaper's own group, and signals to -1 all processes.
		if err != nil || pid <= 1 {
			continue
		}
		switch lines.Text()[0] {
		case '+':
			groups[pid] = true
		case '-':
			delete(groups, pid)
		case '=':
			if members[pid], err = strconv.ParseUint(start, 10, 64); err != nil {
				delete(members, pid)
			}
		case '~':
			delete(members, pid)
		}
	}
	sweep(groups, members, folder)
	return removeFolder(folder)
}

// sweep kills the groups, the processes with the run's variable, and the members, which are
// mapped to when they started, with their descendants, until there are none.
func sweep(groups map[int]bool, members map[int]uint64, folder string) {
	for group := range groups {
		signalGroup(group, syscall.SIGKILL)
	}
	deadline := time.Now().Add(sweepTimeout)
	for time.Now().Before(deadline) {
		left := append(carriers(runVariable+"="+folder), running(members)...)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			signalProcess(pid, syscall.SIGKILL)
		}
		<-time.After(sweepInterval)
	}
}

// running returns the members that run, and adds their descendants to the members.
func running(members map[int]uint64) []int {
	for pid, start := range maps.Clone(members) {
		if p, ok := stat(pid); !ok || p.start != start || p.zombie {
			delete(members, pid)
			continue
		}
		for _, p := range descendants(pid) {
			if !p.zombie {
				members[p.pid] = p.start
			}
		}
	}
	return slices.Collect(maps.Keys(members))
}

// removeFolder removes a run's folder, even if it contains folders without write permission.
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
		return fmt.Errorf("remove folder of the run: %w", err)
	}
	return nil
}
