// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "sync/atomic"

// keepers counts the open keepers of this program, and how often the number has changed. All
// keepers of a program share its children, so that this can't be a field of a Keeper.
var keepers struct { //nolint:gochecknoglobals // The children of the program are global state too.
	open, changes atomic.Int64
}

func keeperOpened() {
	keepers.open.Add(1)
	keepers.changes.Add(1)
}

func keeperClosed() {
	keepers.open.Add(-1)
	keepers.changes.Add(1)
}

// relation is what the environment and the command line of a process say about its run.
type relation int

const (
	// unrelated means that the process carries the variable of no run.
	unrelated relation = iota
	// sameRun means that it carries the variable of the run.
	sameRun
	// otherRun means that it carries the variable of another run, is a reaper, or can't be
	// inspected because it has ended or belongs to another user.
	otherRun
)

// outsider is a descendant of this program that is not a member of the run.
type outsider struct {
	start uint64
	// direct is whether this program may have started it and waits for it.
	direct bool
	// sure is whether it certainly does not belong to the run.
	sure bool
}

// recordOutsiders records the descendants that this program has before the run. Their
// descendants are no members either.
func (t *tracker) recordOutsiders() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.system.list(t.system.self) {
		t.outsiders[p.pid] = outsider{start: p.start, direct: p.parent == t.system.self, sure: true}
		t.crowded = t.crowded || !p.zombie
	}
	t.changes = t.system.keepers()
}

// sortOrphans handles the children of this program whose origin is not known: orphans that
// were started and orphaned between two scans. Such an orphan can only come from a process
// that ran during the last scan. If all of these belonged to the run, so does the orphan: it
// becomes a member of an unknown set when it is found a second time. If some did not, or if
// this program is the first process of its PID namespace, which adopts all orphans, it is
// left alone.
func (t *tracker) sortOrphans(procs []proc, alone bool) {
	self := t.system.self
	certain := alone && !t.crowded && self != 1
	candidates := map[int]uint64{}
	for _, p := range procs {
		switch {
		case t.knows(p) || p.parent != self || p.pid == t.reaper:
		case p.group == t.system.group:
			// The processes of the run have other groups.
			t.outsiders[p.pid] = outsider{start: p.start, direct: true, sure: true}
		case p.zombie:
			if !alone && p.pid == p.group {
				// Another Keeper may have started it.
				t.outsiders[p.pid] = outsider{start: p.start, direct: true}
			}
		default:
			relation, set := t.system.relation(p.pid)
			switch {
			case relation == sameRun:
				t.adopt(p, set)
			case relation == otherRun:
			case !certain:
				t.outsiders[p.pid] = outsider{start: p.start, direct: !alone}
			case t.candidates[p.pid] == p.start:
				t.adopt(p, "")
			default:
				candidates[p.pid] = p.start
			}
		}
	}
	t.candidates = candidates
}

// knows reports whether the origin of a process is known.
func (t *tracker) knows(p proc) bool {
	_, isRoot := t.roots[p.pid]
	_, isMember := t.members[p.pid]
	other, isOutsider := t.outsiders[p.pid]
	return isRoot || isMember || isOutsider && other.start == p.start
}

// adopt makes a process a member.
func (t *tracker) adopt(p proc, set string) {
	t.members[p.pid] = member{start: p.start, set: set}
	t.notify(p.pid, t.members[p.pid], true)
}

// followOutsiders updates the outsiders: it adds their children and removes those that have
// ended.
func (t *tracker) followOutsiders(procs []proc) {
	present := map[int]outsider{}
	t.crowded = false
	for _, p := range procs {
		known, isKnown := t.outsiders[p.pid]
		parent, isChild := present[p.parent]
		_, isMember := t.members[p.pid]
		switch {
		case isMember || p.pid == t.reaper:
			continue
		case isKnown && known.start == p.start:
		case isChild:
			known = outsider{start: p.start, sure: parent.sure}
		default:
			continue
		}
		present[p.pid] = known
		t.crowded = t.crowded || !p.zombie
	}
	t.outsiders = present
}

// reapOrphans waits for the orphans that have ended.
func (t *tracker) reapOrphans(procs []proc) {
	for _, p := range procs {
		_, isRoot := t.roots[p.pid]
		if p.zombie && p.parent == t.system.self && p.pid != t.reaper && !isRoot && !t.outsiders[p.pid].direct {
			t.system.wait(p.pid)
		}
	}
}
