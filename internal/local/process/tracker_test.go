// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestAttribute(t *testing.T) {
	roots := map[int]string{10: "a", 20: "b"}
	root := proc{pid: 10, parent: 1, group: 10, start: 100}
	for name, test := range map[string]struct {
		procs []proc
		known map[int]member
		want  map[int]member
	}{
		"no processes":     {want: map[int]member{}},
		"started process":  {procs: []proc{root}, want: map[int]member{10: {100, "a"}}},
		"unrelated child":  {procs: []proc{{pid: 11, parent: 1, start: 101}}, want: map[int]member{}},
		"grandchild":       {procs: []proc{root, {pid: 11, parent: 10, start: 101}, {pid: 12, parent: 11, start: 102}}, want: map[int]member{10: {100, "a"}, 11: {101, "a"}, 12: {102, "a"}}},
		"adopted orphan":   {procs: []proc{{pid: 11, parent: 1, start: 101}}, known: map[int]member{11: {101, "a"}}, want: map[int]member{11: {101, "a"}}},
		"child of orphan":  {procs: []proc{{pid: 11, parent: 1, start: 101}, {pid: 13, parent: 11, start: 103}}, known: map[int]member{11: {101, "a"}}, want: map[int]member{11: {101, "a"}, 13: {103, "a"}}},
		"reused PID":       {procs: []proc{{pid: 11, parent: 1, start: 999}}, known: map[int]member{11: {101, "a"}}, want: map[int]member{}},
		"ended process":    {known: map[int]member{11: {101, "a"}}, want: map[int]member{}},
		"PID of a new set": {procs: []proc{{pid: 20, parent: 1, start: 200}}, known: map[int]member{20: {50, "a"}}, want: map[int]member{20: {200, "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := attribute(test.procs, roots, test.known)
			if diff := gocmp.Diff(test.want, got, gocmp.AllowUnexported(member{})); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

// fake is the processes of a system.
type fake struct {
	procs, unlisted []proc
	relations       map[int]relation
	keepers         int64
	waited, found   []int
}

func (f *fake) tracker(self int) *tracker {
	t := newTracker("", func(pid int, _ member, found bool) {
		if found {
			f.found = append(f.found, pid)
		}
	})
	f.keepers = 1
	t.system = system{
		self: self, group: self,
		list: func(root int) []proc {
			if root != self {
				return nil
			}
			return f.procs
		},
		stat: func(pid int) (proc, bool) {
			for _, p := range append(f.unlisted, f.procs...) {
				if p.pid == pid {
					return p, true
				}
			}
			return proc{}, false
		},
		relation: func(pid int) (relation, string) { return f.relations[pid], "" },
		wait:     func(pid int) { f.waited = append(f.waited, pid) },
		keepers:  func() int64 { return f.keepers },
	}
	t.recordOutsiders()
	t.reaper = 90
	return t
}

func TestOrphanOfUnknownOrigin(t *testing.T) {
	const self = 2
	orphan := proc{pid: 50, parent: self, group: 50, start: 500}
	before := proc{pid: 40, parent: self, group: 40, start: 400}
	for name, test := range map[string]struct {
		self   int
		before []proc
		// scans are the listings. The keepers change before the scan with the index.
		scans         [][]proc
		keepersChange map[int]int64
		relation      relation
		want          bool
	}{
		"found twice":                   {scans: [][]proc{{orphan}, {orphan}}, want: true},
		"found once":                    {scans: [][]proc{{orphan}}},
		"other process with the PID":    {scans: [][]proc{{orphan}, {{pid: 50, parent: self, group: 50, start: 501}}}},
		"first process of a namespace":  {self: 1, scans: [][]proc{{{pid: 50, parent: 1, group: 50}}, {{pid: 50, parent: 1, group: 50}}}},
		"child before the keeper":       {before: []proc{orphan}, scans: [][]proc{{orphan}, {orphan}, {orphan}}},
		"may come from an older child":  {before: []proc{before}, scans: [][]proc{{before, orphan}, {before, orphan}, {orphan}, {orphan}}},
		"older child has ended":         {before: []proc{before}, scans: [][]proc{{}, {orphan}, {orphan}}, want: true},
		"several keepers":               {keepersChange: map[int]int64{0: 0}, scans: [][]proc{{orphan}, {orphan}, {orphan}}},
		"another keeper has just ended": {keepersChange: map[int]int64{0: 3}, scans: [][]proc{{orphan}, {orphan}, {orphan}}},
		"another keeper ended before":   {keepersChange: map[int]int64{0: 3}, scans: [][]proc{{}, {orphan}, {orphan}}, want: true},
		"process of another run":        {relation: otherRun, scans: [][]proc{{orphan}, {orphan}}},
		"process of this run":           {relation: sameRun, scans: [][]proc{{orphan}}, want: true},
		"child in the program's group":  {scans: [][]proc{{{pid: 50, parent: self, group: self}}, {{pid: 50, parent: self, group: self}}}},
		"grandchild":                    {scans: [][]proc{{{pid: 50, parent: 4, group: 50}}, {{pid: 50, parent: 4, group: 50}}}},
		"reaper":                        {scans: [][]proc{{{pid: 90, parent: self, group: 90}}, {{pid: 90, parent: self, group: 90}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{procs: test.before, relations: map[int]relation{50: test.relation}}
			tracker := f.tracker(cmp.Or(test.self, self))
			for i, procs := range test.scans {
				if change, ok := test.keepersChange[i]; ok {
					f.keepers = change
				}
				f.procs = procs
				tracker.scan()
			}
			if got := len(f.found) > 0; got != test.want {
				t.Errorf("is a member: %t, want %t", got, test.want)
			}
		})
	}
}

func TestListingThatOmitsMember(t *testing.T) {
	root, child := proc{pid: 10, parent: 2, group: 10, start: 100}, proc{pid: 11, parent: 2, group: 11, start: 110}
	f := &fake{}
	tracker := f.tracker(2)
	tracker.roots[10] = "a"
	below := child
	below.parent = 10
	f.procs = []proc{root, below}
	tracker.scan()
	f.procs, f.unlisted = nil, []proc{root, child}
	tracker.scan()
	f.procs, f.unlisted = []proc{root, child}, nil
	tracker.scan()
	if got := tracker.of("a", 10); len(got) != 1 || got[0] != 11 {
		t.Errorf("members without the leader are %v, want 11", got)
	}
	f.procs = nil
	tracker.scan()
	if left := tracker.all(); len(left) > 0 {
		t.Errorf("members that have ended remain: %v", left)
	}
}

func TestOtherStartedProcessesBelongToTheSet(t *testing.T) {
	f := &fake{}
	tracker := f.tracker(2)
	tracker.roots[10], tracker.roots[20] = "a", "a"
	f.procs = []proc{{pid: 10, parent: 2, group: 10, start: 100}, {pid: 20, parent: 2, group: 20, start: 200}}
	if got := tracker.of("a", 10); len(got) != 1 || got[0] != 20 {
		t.Errorf("members without the leader are %v, want 20", got)
	}
}

func TestWaitForZombies(t *testing.T) {
	for name, test := range map[string]struct {
		zombie        proc
		existed       bool
		severalKeeper bool
		want          bool
	}{
		"orphan":                           {zombie: proc{pid: 50, parent: 2, group: 51}, want: true},
		"orphan that led a session":        {zombie: proc{pid: 50, parent: 2, group: 50}, want: true},
		"started process":                  {zombie: proc{pid: 10, parent: 2, group: 10}},
		"reaper":                           {zombie: proc{pid: 90, parent: 2, group: 90}},
		"child in the program's group":     {zombie: proc{pid: 50, parent: 2, group: 2}},
		"grandchild":                       {zombie: proc{pid: 50, parent: 3, group: 51}},
		"child before the keeper":          {zombie: proc{pid: 50, parent: 2, group: 50}, existed: true},
		"may be started by another keeper": {zombie: proc{pid: 50, parent: 2, group: 50}, severalKeeper: true},
	} {
		t.Run(name, func(t *testing.T) {
			test.zombie.zombie = true
			f := &fake{}
			if test.existed {
				f.procs = []proc{test.zombie}
			}
			tracker := f.tracker(2)
			tracker.roots[10] = "a"
			if test.severalKeeper {
				f.keepers = 0
			}
			f.procs = []proc{test.zombie}
			tracker.scan()
			if got := len(f.waited) == 1; got != test.want {
				t.Errorf("was waited for: %t, want %t", got, test.want)
			}
		})
	}
}
