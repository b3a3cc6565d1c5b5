// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// trackInterval is the interval at which the descendants of a run are recorded.
const trackInterval = 50 * time.Millisecond

// proc is one process, as the system describes it.
type proc struct {
	pid, parent, group int
	// start is when the process started. With the PID, it identifies the process.
	start uint64
	// zombie is whether the process has ended, but its parent has not waited for it.
	zombie bool
}

// member is a process of a run.
type member struct {
	start uint64
	// set is the set of the process that it descends from.
	set string
}

// attribute returns the members of a run among the processes, which are ordered so that
// parents come before their children: the started processes, which roots maps to their
// sets, the known members, and the children of members. A member stays one if its parent
// ends, although the system then gives it another parent.
func attribute(procs []proc, roots map[int]string, known map[int]member) map[int]member {
	members := map[int]member{}
	for _, p := range procs {
		before, isKnown := known[p.pid]
		parent, isChild := members[p.parent]
		set, isRoot := roots[p.pid]
		switch {
		case isRoot:
		case isKnown && before.start == p.start:
			set = before.set
		case isChild:
			set = parent.set
		default:
			continue
		}
		members[p.pid] = member{start: p.start, set: set}
	}
	return members
}

// strays returns the children of the process self that are neither members nor could have
// been started by it: a process that it started is in its group or leads a group.
func strays(procs []proc, self, group int, members map[int]member) []proc {
	return slices.DeleteFunc(slices.Clone(procs), func(p proc) bool {
		_, isMember := members[p.pid]
		return isMember || p.parent != self || p.group == group || p.pid == p.group && p.zombie
	})
}

// tracker finds the processes of a run by their descent. It finds those that have left
// their group, their session and their environment. It is safe for concurrent use.
type tracker struct {
	mu      sync.Mutex
	roots   map[int]string
	members map[int]member
	// notify tells the reaper of a member that was found (true) or has ended (false).
	notify func(pid int, member member, found bool)
}

// start records a process that start has started. No scan happens meanwhile.
func (t *tracker) start(set string, start func() (pid int, err error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	pid, err := start()
	if err == nil {
		t.roots[pid] = set
	}
	return err
}

// ended forgets a started process whose PID is about to be free.
func (t *tracker) ended(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.roots, pid)
	delete(t.members, pid)
}

// scan updates the members, and waits for those that have ended and have no other parent.
func (t *tracker) scan() []proc {
	t.mu.Lock()
	defer t.mu.Unlock()
	self := os.Getpid()
	procs := descendants(self)
	before := t.members
	t.members = attribute(procs, t.roots, before)
	for pid, m := range t.members {
		if _, isRoot := t.roots[pid]; !isRoot && before[pid] != m {
			t.notify(pid, m, true)
		}
	}
	for pid, m := range before {
		if _, is := t.members[pid]; !is {
			t.notify(pid, m, false)
		}
	}
	for _, p := range procs {
		_, isRoot := t.roots[p.pid]
		_, isMember := t.members[p.pid]
		adopted := isMember || p.pid != p.group && p.group != ownGroupID()
		if p.zombie && p.parent == self && !isRoot && adopted {
			waitFor(p.pid)
		}
	}
	return procs
}

// of returns the running members of a set, without the process that leads it.
func (t *tracker) of(set string) []int {
	procs := t.scan()
	t.mu.Lock()
	defer t.mu.Unlock()
	var pids []int
	for _, p := range procs {
		_, isRoot := t.roots[p.pid]
		if m, is := t.members[p.pid]; is && m.set == set && !isRoot && !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// all returns the members.
func (t *tracker) all() map[int]member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.members)
}

// starts returns when each of the members started.
func (t *tracker) starts() map[int]uint64 {
	starts := map[int]uint64{}
	for pid, m := range t.all() {
		starts[pid] = m.start
	}
	return starts
}

// killStrays kills the processes of an ended run whose descent is not known: they were
// started and orphaned between two scans. A process that is about to execute its program
// looks like one, so that only those are killed that are found twice.
func (t *tracker) killStrays() {
	var before []proc
	for deadline := time.Now().Add(sweepTimeout); time.Now().Before(deadline); {
		procs := t.scan()
		var found []proc
		for _, p := range strays(procs, os.Getpid(), ownGroupID(), t.all()) {
			if !p.zombie && !belongsToRun(p.pid) {
				found = append(found, p)
			}
		}
		if len(found) == 0 {
			return
		}
		for _, p := range found {
			if slices.Contains(before, p) {
				signalProcess(p.pid, syscall.SIGKILL)
			}
		}
		before = found
		<-time.After(sweepInterval)
	}
}
