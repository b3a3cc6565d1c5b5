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

// tracker finds the processes of a run by their descent. It finds those that have left
// their group, their session and their environment. It is safe for concurrent use.
type tracker struct {
	mu      sync.Mutex
	system  system
	roots   map[int]string
	members map[int]member
	// outsiders are the other descendants of this program, except for the reaper. crowded is
	// whether one of them ran during the last scan.
	outsiders map[int]outsider
	crowded   bool
	reaper    int
	// candidates are the orphans that the last scan found first, and when they started.
	candidates map[int]uint64
	// changes is the number of changes to the keepers of this program at the last scan.
	changes int64
	// notify tells the reaper of a member that was found (true) or has ended (false).
	notify func(pid int, member member, found bool)
}

// system is the view of the system that a tracker has. Tests replace it.
type system struct {
	// self and group are the PID and the group of this program.
	self, group int
	list        func(root int) []proc
	stat        func(pid int) (proc, bool)
	relation    func(pid int) (relation, string)
	wait        func(pid int)
	// keepers returns the number of changes to the keepers of this program. It is 0 if this
	// program has several keepers.
	keepers func() int64
}

func newTracker(folder string, notify func(pid int, member member, found bool)) *tracker {
	return &tracker{
		roots: map[int]string{}, outsiders: map[int]outsider{}, notify: notify,
		system: system{
			self: os.Getpid(), group: ownGroupID(), list: descendants, stat: stat, wait: waitFor,
			relation: func(pid int) (relation, string) { return relationOf(pid, folder) },
			keepers: func() int64 {
				changes := keepers.changes.Load()
				if keepers.open.Load() != 1 {
					return 0
				}
				return changes
			},
		},
	}
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

// release waits for a started process that has ended, which frees its PID, and forgets it. No
// scan happens meanwhile: it would take the process for an orphan, and its exit status would be
// lost.
func (t *tracker) release(pid int, wait func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait()
	delete(t.roots, pid)
	delete(t.members, pid)
}

// scan updates the members, and waits for the orphans that have ended.
func (t *tracker) scan() []proc {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.members
	changes := t.system.keepers()
	procs := t.complete(t.system.list(t.system.self))
	alone := changes != 0 && changes == t.changes && changes == t.system.keepers()
	t.changes = changes
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
	t.sortOrphans(procs, alone)
	t.followOutsiders(procs)
	t.reapOrphans(procs)
	return procs
}

// complete adds the known processes, with their descendants, that a listing misses because
// processes started or ended meanwhile.
func (t *tracker) complete(procs []proc) []proc {
	listed := make(map[int]bool, len(procs))
	for _, p := range procs {
		listed[p.pid] = true
	}
	var missed []proc
	add := func(p proc) {
		if !listed[p.pid] {
			listed[p.pid] = true
			missed = append(missed, p)
		}
	}
	check := func(pid int, start uint64) {
		if listed[pid] {
			return
		}
		if p, ok := t.system.stat(pid); ok && p.start == start {
			add(p)
			for _, below := range t.system.list(pid) {
				add(below)
			}
		}
	}
	for pid, m := range t.members {
		check(pid, m.start)
	}
	for pid, o := range t.outsiders {
		check(pid, o.start)
	}
	return append(missed, procs...)
}

// of returns the running members of a set, without the process that leads it.
func (t *tracker) of(set string, leader int) []int {
	procs := t.scan()
	t.mu.Lock()
	defer t.mu.Unlock()
	var pids []int
	for _, p := range procs {
		if m, is := t.members[p.pid]; is && m.set == set && p.pid != leader && !p.zombie {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// undecided reports whether a process is a descendant of this program that may belong to
// the run, although its set is not known.
func (t *tracker) undecided(pid int) bool {
	procs := t.scan()
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(procs, func(p proc) bool { return p.pid == pid }) &&
		t.members[pid].set == "" && !t.outsiders[pid].sure && pid != t.reaper
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

// killLeft kills the members that are left at the end of the run, until there are none and
// all orphans are attributed.
func (t *tracker) killLeft() {
	for deadline := time.Now().Add(sweepTimeout); time.Now().Before(deadline); {
		procs := t.scan()
		t.mu.Lock()
		left := len(t.candidates) > 0
		for _, p := range procs {
			if m, is := t.members[p.pid]; is && m.start == p.start && !p.zombie {
				left = true
				signalProcess(p.pid, syscall.SIGKILL)
			}
		}
		t.mu.Unlock()
		if !left {
			return
		}
		<-time.After(sweepInterval)
	}
}
