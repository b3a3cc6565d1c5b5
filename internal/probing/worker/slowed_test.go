// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// paceLog is a prober that records when each probe runs, and the sink and the observer of its worker.
type paceLog struct {
	mu   sync.Mutex
	runs map[string][]time.Time
	// slowed counts the slowed runs of each namespace by limit, and problems are the messages of each.
	slowed   map[string]map[pace.Limit]int
	problems map[string]string
}

func (l *paceLog) Probe(_ context.Context, target probing.Target) (probing.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := target.Owner.Pod + " " + target.Owner.Probe
	l.runs[name] = append(l.runs[name], time.Now())
	return probing.Outcome{Success: true}, nil
}

func (l *paceLog) ProbeChanged(change worker.Change) {
	if problem := change.State.Problem; problem.Reason == v1alpha1.ProbeRateLimited {
		l.problems[change.Pod.Namespace] = problem.Message
	}
}

func (*paceLog) ProbeGone(identity.Key) {}

func (l *paceLog) observe(run worker.Run) {
	if run.RateLimited == "" {
		return
	}
	if l.slowed[run.Pod.Namespace] == nil {
		l.slowed[run.Pod.Namespace] = map[pace.Limit]int{}
	}
	l.slowed[run.Pod.Namespace][run.RateLimited]++
}

// within returns the tasks with another period.
func within(period time.Duration, tasks []worker.Task) []worker.Task {
	for i := range tasks {
		tasks[i].Policy.Period = period
	}
	return tasks
}

// TestFastProbesSlowNobodyElse runs pods with many fast probes next to those of an honest namespace, whose
// probes run in every period of every second.
func TestFastProbesSlowNobodyElse(t *testing.T) {
	nowhere := func(int, int) string { return "" }
	honest := func() []worker.Task { return planOf("honest", 110, 5, time.Second, nowhere) }
	hostile := func(namespace string, pods, probes int) []worker.Task {
		return within(100*time.Millisecond, planOf(namespace, pods, probes, time.Second, nowhere))
	}
	cases := map[string]struct {
		tasks []worker.Task
		// most is how many probes of others than the honest namespace run per second, at most.
		most int
		// slowed are the limits that slow each namespace, and message is that of the hostile one.
		slowed  map[string]pace.Limit
		message string
	}{
		"ordinary node": {tasks: honest()},
		"one pod": {
			append(honest(), hostile("hostile", 1, 148)...), 300, map[string]pace.Limit{"hostile": pace.LimitPod},
			"the probe runs less often than its period: the probes of the pod exceed 300 TCP probes per second, an eighth of probeRate",
		},
		"many pods": {
			append(honest(), hostile("hostile", 20, 40)...), 2400 - 550, map[string]pace.Limit{"hostile": pace.LimitNode},
			"the probe runs less often than its period: the probes of the node exceed probeRate, 2400 TCP probes per second, which namespaces and pods share",
		},
		"two namespaces": {
			slices.Concat(hostile("hostile", 10, 40), honest(), hostile("more", 10, 40)), 2400 - 550,
			map[string]pace.Limit{"hostile": pace.LimitNode, "more": pace.LimitNode},
			"the probe runs less often than its period: the probes of the node exceed probeRate, 2400 TCP probes per second, which namespaces and pods share",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 20
				log := runWithin(t, pace.LimitsOf(2400), tc.tasks, seconds*time.Second)
				checkHonest(t, log)
				others := 0
				for name, runs := range log.runs {
					if strings.HasPrefix(name, "honest/") {
						continue
					}
					others += len(runs)
					if len(runs) < 2 {
						t.Errorf("probe %s ran %d times", name, len(runs))
					}
				}
				if most := tc.most * (seconds + 1); others > most+2400 || others < most*8/10 {
					t.Errorf("%d runs of the other namespaces, want about %d", others, most)
				}
				slowed := map[string]pace.Limit{}
				for namespace, by := range log.slowed {
					slowed[namespace] = pace.LimitPod
					if by[pace.LimitNode] > by[pace.LimitPod] {
						slowed[namespace] = pace.LimitNode
					}
				}
				if tc.slowed == nil {
					tc.slowed = map[string]pace.Limit{}
				}
				expect.Equal(t, "limits", tc.slowed, slowed)
				if got := log.problems["hostile"]; got != tc.message || log.problems["honest"] != "" {
					t.Errorf("problems %q, want %q of the hostile namespace only", log.problems, tc.message)
				}
			})
		})
	}
}

// runWithin runs probes for a while.
func runWithin(t *testing.T, limits pace.Limits, tasks []worker.Task, d time.Duration) *paceLog {
	t.Helper()
	log := &paceLog{runs: map[string][]time.Time{}, slowed: map[string]map[pace.Limit]int{}, problems: map[string]string{}}
	stop := startWorker(t.Context(), worker.Options{
		Prober: log, Sink: log, Observe: log.observe, Phase: worker.PhaseOf, Limits: limits, Now: time.Now,
	}, tasks)
	pass(d)
	stop()
	return log
}

// checkHonest checks that the probes of the honest namespace run once per second, except for the first
// seconds, in which all probes start together and move to their phases.
func checkHonest(t *testing.T, log *paceLog) {
	t.Helper()
	for name, runs := range log.runs {
		if !strings.HasPrefix(name, "honest/") {
			continue
		}
		if len(runs) < 16 {
			t.Errorf("probe %s ran %d times in 20 seconds", name, len(runs))
		}
		for i := 6; i < len(runs); i++ {
			if late := runs[i].Sub(runs[i-1]) - time.Second; late.Abs() > 20*time.Millisecond {
				t.Errorf("probe %s ran %s late", name, late)
			}
		}
	}
	if len(log.slowed["honest"]) > 0 {
		t.Errorf("runs of the honest namespace were slowed: %v", log.slowed["honest"])
	}
}

// TestChangesOfWaitingProbes has a rate of one command per second. After probe p has run, probe q waits
// until 500ms; at 250ms, the plan or the container changes.
func TestChangesOfWaitingProbes(t *testing.T) {
	cases := map[string]struct {
		change func(b *bench)
		runs   map[string][]string
	}{
		"nothing":   {func(*bench) {}, map[string][]string{"p": {"0s a"}, "q": {"500ms a"}}},
		"same plan": {func(b *bench) { b.plan(planned("p"), planned("q")) }, map[string][]string{"p": {"0s a"}, "q": {"500ms a"}}},
		"removed":   {func(b *bench) { b.plan(planned("p")) }, map[string][]string{"p": {"0s a"}}},
		"edited":    {func(b *bench) { b.plan(planned("p"), planned("q", command("r"))) }, map[string][]string{"p": {"0s a"}, "r": {"500ms a"}}},
		"edited with a delay": {
			func(b *bench) {
				b.plan(planned("p"), planned("q", func(p *worker.Task) { p.Policy.InitialDelay = 1200 * time.Millisecond }))
			},
			map[string][]string{"p": {"0s a"}, "q": {"1.2s a"}},
		},
		"without an address": {
			func(b *bench) {
				b.plan(planned("p"), planned("q", func(p *worker.Task) { p.Handler, p.Target = corev1.ProbeHandler{}, probing.Target{} }))
			},
			map[string][]string{"p": {"0s a"}},
		},
		"in another namespace, then removed": {
			func(b *bench) {
				b.plan(planned("p"), planned("q", func(p *worker.Task) { p.Pod.Namespace = "other" }))
				b.plan(planned("p"))
			},
			map[string][]string{"p": {"0s a"}},
		},
		"container unknown":   {func(b *bench) { b.ContainerUnknown(container()) }, map[string][]string{"p": {"0s a"}}},
		"container gone":      {func(b *bench) { b.ContainerGone(container()) }, map[string][]string{"p": {"0s a"}}},
		"container restarted": {func(b *bench) { b.plan(planned("q")); b.containerRuns("b") }, map[string][]string{"p": {"0s a"}, "q": {"500ms b"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchWithin(t, pace.Limits{Pod: 2})
				b.containerRuns("a")
				b.plan(planned("p"), planned("q"))
				pass(250 * time.Millisecond)
				tc.change(b)
				pass(1200 * time.Millisecond)
				b.stop()
				expect.Equal(t, "runs", tc.runs, b.runs)
			})
		})
	}
}

// TestFurtherRequestsCount has a server that redirects each second request, which needs nine more requests with
// TLS. The pod gets as many runs as if all did.
func TestFurtherRequestsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchWithin(t, pace.Limits{Pod: 100})
		defer b.stop()
		b.result = func(target probing.Target, n int) (time.Duration, probing.Outcome, error) {
			for range n % 2 * 9 {
				target.Again(true)
			}
			return 0, probing.Outcome{Success: true}, nil
		}
		b.containerRuns("a")
		b.plan(planned("p", period(100*time.Millisecond)))
		pass(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		// Runs cost 74 and 2, and count as 37 and 74.
		if n := len(b.runs["p"]); n < 90 || n > 120 {
			t.Errorf("%d runs in a minute, want about 108", n)
		}
	})
}

// TestSlowedProbeHasProblem slows a probe to half of its rate, with thresholds, and then removes the one
// that slows it.
func TestSlowedProbeHasProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchWithin(t, pace.Limits{Pod: 5})
		every := period(500 * time.Millisecond)
		three := func(p *worker.Task) { p.Policy.SuccessThreshold = 3 }
		b.containerRuns("a")
		b.plan(planned("p", every, three), planned("q", every, three))
		pass(10 * time.Second)
		b.plan(planned("p", every, three))
		pass(2 * time.Minute)
		b.stop()
		if len(b.problems) == 0 || !strings.HasSuffix(b.problems[0], `"RateLimited"`) {
			t.Fatalf("problems %q, want RateLimited first", b.problems)
		}
		last := b.problems[len(b.problems)-1]
		if !strings.HasSuffix(last, `p ""`) || !strings.HasPrefix(last, "1m") {
			t.Errorf("last change %q of the problem, want that it ends about a minute after the last slowed run", last)
		}
		if n := slices.IndexFunc(b.changes, func(c string) bool { return strings.HasSuffix(c, "p >Succeeded") }); n < 0 {
			t.Errorf("changes %q, want that p succeeds", b.changes)
		} else if third := strings.Fields(b.runs["p"][2])[0]; !strings.HasPrefix(b.changes[n], third+" ") {
			t.Errorf("p succeeds at %q, want at its third run, %s", b.changes[n], third)
		}
	})
}
