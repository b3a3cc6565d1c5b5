// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/apply"
)

func TestStepsWaitForTheirOwnWrites(t *testing.T) {
	now := metav1.Now()
	alive := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}
	ending := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a", DeletionTimestamp: &now}}
	all := versions{set: "100", pods: "100", claims: "100", revisions: "100"}
	cases := map[string]struct {
		wrote  apply.Outcome
		status string
		cached versions
		pods   []*corev1.Pod
		want   bool
	}{
		"nothing written":             {cached: versions{}, want: true},
		"cache with the pods":         {wrote: apply.Outcome{Pods: "100"}, cached: all, want: true},
		"older cache of pods":         {wrote: apply.Outcome{Pods: "101"}, cached: all},
		"longer version is newer":     {wrote: apply.Outcome{Pods: "99"}, cached: all, want: true},
		"older cache of claims":       {wrote: apply.Outcome{Claims: "101"}, cached: all},
		"older cache of revisions":    {wrote: apply.Outcome{Revisions: "101"}, cached: all},
		"older cache of sets":         {status: "101", cached: all},
		"cache with the status":       {status: "100", cached: all, want: true},
		"deleted pod is in the cache": {wrote: apply.Outcome{Deleted: []types.UID{"a"}}, cached: all, pods: []*corev1.Pod{alive}},
		"deleted pod is terminating":  {wrote: apply.Outcome{Deleted: []types.UID{"a"}}, cached: all, pods: []*corev1.Pod{ending}, want: true},
		"deleted pod is gone":         {wrote: apply.Outcome{Deleted: []types.UID{"a"}}, cached: all, want: true},
		"cache without versions":      {wrote: apply.Outcome{Pods: "101"}, cached: versions{}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, key := newExpectations(), types.NamespacedName{Namespace: "ns", Name: "set"}
			s.published(key, "uid", tc.status)
			s.update(key, "uid", func(e *expectations) {
				e.wrote(&tc.wrote)
				if got := e.caughtUp(tc.cached, unseenOf(tc.pods)); got != tc.want {
					t.Errorf("caught up %t, want %t", got, tc.want)
				}
			})
			if got := s.isWaiting(key); got == tc.want {
				t.Errorf("waiting %t, want %t", got, !tc.want)
			}
			s.update(key, "other", func(e *expectations) {
				if !e.caughtUp(tc.cached, unseenOf(tc.pods)) {
					t.Error("a new set with the same name waits for the writes to the earlier one")
				}
			})
		})
	}
}

func TestLargeSetsPause(t *testing.T) {
	e, now := &expectations{}, time.Unix(100, 0)
	for pods, want := range map[int]time.Duration{0: 0, 10: 10 * pausePerPod, 1 << 20: longest} {
		e.plans(1, pods, now)
		if pause := e.pause(now); pause != want {
			t.Errorf("pause after a step of %d pods: %s, want %s", pods, pause, want)
		}
		if pause := e.pause(now.Add(longest)); pause != 0 {
			t.Errorf("pause of %d pods after %s: %s, want none", pods, longest, pause)
		}
	}
}

func TestPause(t *testing.T) {
	p, calls := NewPause(), 0
	p.resume = append(p.resume, func() { calls++ })
	if !p.Active() {
		t.Error("a new pause is not active")
	}
	for i, step := range []struct {
		active bool
		calls  int
	}{{false, 1}, {false, 1}, {true, 1}, {false, 2}} {
		if p.Set(step.active); p.Active() != step.active || calls != step.calls {
			t.Errorf("step %d: active %t after %d calls, want %t after %d", i, p.Active(), calls, step.active, step.calls)
		}
	}
}

func TestRetriesAfterAnOutageAreSoon(t *testing.T) {
	e := &expectations{}
	for i, want := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
		if delay := e.failed(longestWait); delay != want {
			t.Errorf("delay after %d failures: %s, want %s", i, delay, want)
		}
	}
	for range 100 {
		if delay := e.failed(longestWait); delay > longestWait {
			t.Fatalf("delay %s, want at most %s", delay, longestWait)
		}
	}
	e.failures = 0
	if delay := e.failed(longestWait); delay != firstRetry {
		t.Errorf("delay after a recovery: %s, want %s", delay, firstRetry)
	}
}

func TestRestoredAPIServerEndsTheWait(t *testing.T) {
	s, key := newExpectations(), types.NamespacedName{Name: "set"}
	at := func(version string) versions {
		return s.observe(func() versions {
			return versions{set: version, pods: version, claims: version, revisions: version}
		})
	}
	caughtUp := func(version string) (caughtUp bool) {
		cached := at(version)
		s.update(key, "uid", func(e *expectations) {
			caughtUp = e.caughtUp(cached, unseenOf([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}))
		})
		return caughtUp
	}
	at("1000")
	s.update(key, "uid", func(e *expectations) {
		e.wrote(&apply.Outcome{Pods: "1003", Claims: "1002", Revisions: "1001", Deleted: []types.UID{"a"}})
	})
	s.published(key, "uid", "1004")
	if caughtUp("1000") {
		t.Error("the step does not wait for its writes")
	}
	if !caughtUp("900") {
		t.Error("the step waits for writes that the restored API server does not have")
	}
	s.update(key, "uid", func(e *expectations) { e.wrote(&apply.Outcome{Pods: "902"}) })
	if caughtUp("901") {
		t.Error("the step does not wait for its writes to the restored API server")
	}
}

func TestWaitingSetsAreRarelyReconciledWithoutEvents(t *testing.T) {
	e, start := &expectations{}, time.Unix(100, 0)
	wait := func(after time.Duration) time.Duration {
		e.caughtUp(versions{pods: "1"}, unseenOf(nil))
		e.waits(1<<20, start.Add(after))
		return e.recheck(start.Add(after))
	}
	e.wrote(&apply.Outcome{Pods: "2"})
	for after, want := range map[time.Duration]time.Duration{0: recheck, 2 * time.Second: 500 * time.Millisecond, time.Hour: longestRecheck} {
		e.plans(1, 1, start)
		wait(0)
		if delay := wait(after); delay != want {
			t.Errorf("delay after %s: %s, want %s", after, delay, want)
		}
		if pause := e.pause(start.Add(after)); pause != recheck {
			t.Errorf("events are handled after %s, want %s", pause, recheck)
		}
	}
	if e.caughtUp(versions{pods: "2"}, unseenOf(nil)); e.recheck(start) != 0 {
		t.Error("a set whose cache has its writes waits")
	}
}

func TestChangingSets(t *testing.T) {
	s, at := newExpectations(), time.Unix(1000, 0)
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"no set", func() {}, 0},
		{"two differ", func() { s.compared(a, "a", true, at); s.compared(b, "b", true, at) }, 2},
		{"one still differs", func() { s.compared(a, "a", true, at) }, 2},
		{"one does not differ", func() { s.compared(a, "a", false, at) }, 1},
		{"another is written", func() { s.published(b, "b", "5") }, 0},
		{"one differs again", func() { s.compared(a, "a", true, at) }, 1},
		{"it is deleted", func() { s.forget(a) }, 0},
	} {
		if step.do(); s.changing() != step.want {
			t.Errorf("%s: %d sets change, want %d", step.name, s.changing(), step.want)
		}
	}
}

func TestBegunSets(t *testing.T) {
	e, at := &expectations{}, time.Unix(1000, 0)
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"unknown set", func() {}, false},
		{"first step of a generation", func() { e.plans(1, 0, at) }, true},
		{"another step", func() { e.plans(1, 0, at.Add(time.Second)) }, true},
		{"converged", func() { e.begun = time.Time{} }, false},
		{"step after a pod failed", func() { e.plans(1, 0, at) }, false},
		{"next generation", func() { e.plans(2, 0, at) }, true},
		{"too long", func() { at = at.Add(longestPostponement) }, false},
	} {
		if step.do(); e.isBegun(at) != step.want {
			t.Errorf("%s: begun %t, want %t", step.name, !step.want, step.want)
		}
	}
}
