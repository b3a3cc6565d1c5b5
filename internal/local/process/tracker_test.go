// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(member{})); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStrays(t *testing.T) {
	for name, test := range map[string]struct {
		proc proc
		want bool
	}{
		"orphan in its own session":  {proc{pid: 5, parent: 1, group: 5}, true},
		"orphan in another group":    {proc{pid: 5, parent: 1, group: 4}, true},
		"child in the group of self": {proc{pid: 5, parent: 1, group: 1}, false},
		"member":                     {proc{pid: 7, parent: 1, group: 7}, false},
		"grandchild":                 {proc{pid: 5, parent: 4, group: 5}, false},
		"ended leader":               {proc{pid: 5, parent: 1, group: 5, zombie: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(strays([]proc{test.proc}, 1, 1, map[int]member{7: {}})) == 1; got != test.want {
				t.Errorf("stray is %t, want %t", got, test.want)
			}
		})
	}
}
