// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestAttribute(t *testing.T) {
	children := map[int]*child{10: {set: "a"}, 20: {set: "b"}}
	labelOf := func(pid int) string { return map[int]string{30: "b"}[pid] }
	known := map[int]proc{11: {start: 101, set: "a"}, 20: {start: 50, set: "a"}}
	root := proc{pid: 10, start: 100}
	for name, test := range map[string]struct {
		procs []proc
		want  map[int]string
	}{
		"no processes":    {want: map[int]string{}},
		"started process": {[]proc{root}, map[int]string{10: "a"}},
		"grandchild": {
			[]proc{root, {pid: 12, parent: 10, start: 102}, {pid: 13, parent: 12, start: 103}}, map[int]string{10: "a", 12: "a", 13: "a"},
		},
		"adopted orphan":         {[]proc{{pid: 11, parent: 1, start: 101}}, map[int]string{11: "a"}},
		"child of orphan":        {[]proc{{pid: 11, parent: 1, start: 101}, {pid: 13, parent: 11, start: 103}}, map[int]string{11: "a", 13: "a"}},
		"reused PID":             {[]proc{{pid: 11, parent: 1, start: 999}}, map[int]string{11: ""}},
		"PID of a new set":       {[]proc{{pid: 20, parent: 1, start: 200}}, map[int]string{20: "b"}},
		"orphan with a label":    {[]proc{{pid: 30, parent: 1, start: 300}}, map[int]string{30: "b"}},
		"child with other label": {[]proc{root, {pid: 30, parent: 10, start: 300}}, map[int]string{10: "a", 30: "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[int]string{}
			for pid, p := range attribute(test.procs, children, known, labelOf) {
				got[pid] = p.set
			}
			expect.Equal(t, "sets", test.want, got)
		})
	}
}
