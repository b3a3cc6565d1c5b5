// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/expect"
)

// run returns the ticket of a run, written namespace/pod/probe.
func run(name string) *ticket {
	parts := strings.Split(name, "/")
	return &ticket{owner: probing.Owner{Namespace: parts[0], Pod: parts[1], Probe: parts[2]}}
}

func nameOf(t *ticket) string {
	return t.owner.Namespace + "/" + t.owner.Pod + "/" + t.owner.Probe
}

func TestShares(t *testing.T) {
	cases := map[string]struct {
		total   int
		waiting string
		// start are the runs that start at once. done are runs that end then, one after the
		// other, and after are the runs that start when they have ended.
		start, done, after string
	}{
		"empty":                           {total: 4},
		"one slot":                        {total: 1, waiting: "a/p/1 a/p/2 b/p/1", start: "a/p/1", done: "a/p/1", after: "b/p/1"},
		"one pod uses a quarter":          {total: 8, waiting: "a/p/1 a/p/2 a/p/3 a/p/4", start: "a/p/1 a/p/2", done: "a/p/1", after: "a/p/3"},
		"one namespace uses three fourth": {total: 4, waiting: "a/p/1 a/q/1 a/r/1 a/s/1", start: "a/p/1 a/q/1 a/r/1", done: "a/q/1", after: "a/s/1"},
		"second namespace": {
			total: 4, waiting: "a/p/1 a/q/1 a/r/1 a/s/1 b/p/1 b/q/1", start: "a/p/1 b/p/1 a/q/1", done: "b/p/1", after: "b/q/1",
		},
		"last slots are for namespaces without one": {
			total: 16, waiting: "a/p/1 b/p/1 c/p/1 d/p/1 e/p/1 f/p/1 g/p/1 h/p/1 a/q/1 b/q/1 c/q/1 d/q/1 e/q/1 f/q/1 g/q/1 h/q/1",
			start: "a/p/1 b/p/1 c/p/1 d/p/1 e/p/1 f/p/1 g/p/1 h/p/1 a/q/1 b/q/1 c/q/1 d/q/1 e/q/1 f/q/1", done: "a/p/1", after: "g/q/1",
		},
		"pods take turns":               {total: 4, waiting: "a/p/1 a/p/2 a/q/1 a/q/2", start: "a/p/1 a/q/1", done: "a/p/1 a/q/1", after: "a/p/2 a/q/2"},
		"order of arrival within a pod": {total: 4, waiting: "a/p/1 a/p/2 a/p/3", start: "a/p/1", done: "a/p/1", after: "a/p/2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newShares(tc.total)
			running := map[string]*ticket{}
			admit := func() (started []string) {
				for next := s.next(); next != nil; next = s.next() {
					started = append(started, nameOf(next))
					running[nameOf(next)] = next
				}
				return started
			}
			for _, name := range strings.Fields(tc.waiting) {
				s.wait(run(name))
			}
			expect.Equal(t, "runs that start at once", tc.start, strings.Join(admit(), " "))
			var after []string
			for _, name := range strings.Fields(tc.done) {
				s.release(running[name])
				after = append(after, admit()...)
			}
			expect.Equal(t, "runs that start then", tc.after, strings.Join(after, " "))
		})
	}
}

// FuzzShares drives the slots with runs of a few namespaces and pods. A namespace that uses
// no slot waits for at most one run of each other namespace that waits, and nothing is left
// when all runs have ended.
func FuzzShares(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := newShares(1 + random.IntN(17))
		var waiting, running []*ticket
		// behind counts, for each namespace that waits without a slot, the runs that other
		// namespaces started since.
		behind := map[string]map[string]int{}
		take := func(list *[]*ticket) *ticket {
			i := random.IntN(len(*list))
			t := (*list)[i]
			*list = append((*list)[:i], (*list)[i+1:]...)
			return t
		}
		started := func(next *ticket) {
			name := next.owner.Namespace
			for other, runs := range behind {
				if runs[name]++; other != name && runs[name] > 1 {
					t.Fatalf("namespace %s waits for %d runs of %s", other, runs[name], name)
				}
			}
			delete(behind, name)
			for i := range waiting {
				if waiting[i] == next {
					waiting = append(waiting[:i], waiting[i+1:]...)
					break
				}
			}
			running = append(running, next)
		}
		for step := range 400 {
			switch action := random.IntN(10); {
			case action < 5 && step < 300:
				next := run(fmt.Sprintf("n%d/p%d/%d", random.IntN(5), random.IntN(4), step))
				s.wait(next)
				waiting = append(waiting, next)
			case action < 6 && len(waiting) > 0:
				s.withdraw(take(&waiting))
			case len(running) > 0:
				s.release(take(&running))
			}
			for next := s.next(); next != nil; next = s.next() {
				started(next)
			}
			check(t, s, waiting, running)
			for name := range behind {
				if n := s.namespaces[name]; n == nil || n.waiting == 0 {
					delete(behind, name)
				}
			}
			for name, n := range s.namespaces {
				if n.waiting > 0 && n.used == 0 && behind[name] == nil {
					behind[name] = map[string]int{}
				}
			}
		}
		for len(running) > 0 {
			s.release(take(&running))
			for next := s.next(); next != nil; next = s.next() {
				started(next)
			}
		}
		if len(waiting) > 0 || s.used != 0 || len(s.namespaces) != 0 {
			t.Errorf("%d runs wait, %d slots are used, %d namespaces are known at the end, want none", len(waiting), s.used, len(s.namespaces))
		}
	})
}

// check compares the counts with the runs, and the limits.
func check(t *testing.T, s *shares, waiting, running []*ticket) {
	t.Helper()
	if s.used != len(running) || s.used > s.total {
		t.Fatalf("%d of %d slots used by %d runs", s.used, s.total, len(running))
	}
	queued := 0
	for name, n := range s.namespaces {
		queued += n.waiting
		if n.used > max(s.total*3/4, 1) {
			t.Fatalf("namespace %s uses %d of %d slots", name, n.used, s.total)
		}
		for pod, p := range n.pods {
			if p.used > max(s.total/4, 1) || p.waiting != len(p.queue) {
				t.Fatalf("pod %s/%s uses %d of %d slots, %d of %d wait", name, pod, p.used, s.total, p.waiting, len(p.queue))
			}
		}
	}
	if queued != len(waiting) {
		t.Fatalf("%d runs wait, want %d", queued, len(waiting))
	}
}
