// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestAgenda(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var a agenda
	steps := []struct {
		name string
		do   func(now time.Time)
		// after is the time since the start.
		after time.Duration
		due   []string
		wait  time.Duration
		// computed is how long the pass computes, and next after which time the next one must start.
		computed, next time.Duration
	}{
		{name: "empty"},
		{
			name: "the longest wait first", after: time.Second,
			do: func(now time.Time) {
				a.add("ns", appointment{"b", now}, appointment{"c", now.Add(-1)}, appointment{"a", now}, appointment{"later", now.Add(time.Second)})
				a.add("other", appointment{"a", now})
			},
			due: []string{"c", "a", "b"}, next: time.Second,
		},
		{name: "rests", after: 1015 * time.Millisecond, do: func(now time.Time) { a.add("ns", appointment{"b", now}) }, wait: 5 * time.Millisecond},
		{
			name: "after the pause", after: 1020 * time.Millisecond,
			do:  func(now time.Time) { a.add("ns", appointment{"later", now.Add(time.Hour)}) }, // It is due earlier.
			due: []string{"b"}, computed: time.Second, next: 3 * time.Second,
		},
		{name: "rests as long as it computed, times three", after: 4 * time.Second, wait: 20 * time.Millisecond},
		{name: "due while it rested", after: 4020 * time.Millisecond, due: []string{"later"}},
		{
			name: "woken", after: 5 * time.Second,
			do: func(now time.Time) {
				a.add("ns", appointment{"x", now.Add(time.Hour)}, appointment{"w", now.Add(time.Minute)})
				if !a.wake("ns") {
					t.Error("nothing is woken")
				}
			},
			due: []string{"w", "x"},
		},
		{name: "nothing to wake", after: 6 * time.Second, do: func(time.Time) {
			if a.wake("ns") || a.wake("none") {
				t.Error("something is woken")
			}
		}},
	}
	for _, step := range steps {
		now := start.Add(step.after)
		if step.do != nil {
			step.do(now)
		}
		due, wait := a.take("ns", now)
		var names []string
		for _, each := range due {
			names = append(names, each.marker)
		}
		if diff := cmp.Diff(step.due, names); diff != "" || wait != step.wait {
			t.Fatalf("%s: waits %s, want %s; due (-want +got):\n%s", step.name, wait, step.wait, diff)
		}
		if wait > 0 {
			continue
		}
		expect.Equal(t, fmt.Sprintf("%s: next pass after", step.name), step.next, a.finish("ns", step.computed, false, now))
	}
	a.finish("ns", 0, true, start)
	a.finish("none", 0, true, start)
	expect.Equal(t, "namespaces that are kept", 1, a.namespaces.Len())
}
