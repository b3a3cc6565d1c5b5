// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// scenario is what happens to a worker, with the expected runs of each command, and the expected
// transitions and changes of problems. Runs of the command "up" are those of a startup probe.
type scenario struct {
	play              []step
	runs              map[string][]string
	changes, problems []string
}

// step is what happens to a worker, or a time that passes.
type step func(*bench)

func after(d time.Duration) step { return func(*bench) { pass(d) } }

// starts starts the container with the ID, and exits, unknown and removed are what else happens to it.
func starts(id string) step { return func(b *bench) { b.containerRuns(id) } }

func exits(b *bench) {
	b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Reason: "exited with code 1"})
}

func unknown(b *bench) { b.ContainerUnknown(container()) }

func removed(b *bench) { b.ContainerGone(container()) }

func synced(b *bench) { b.ContainersSynced() }

// results decides about the results of the runs.
func results(result func(probing.Target, int) (time.Duration, probing.Outcome, error)) step {
	return func(b *bench) { b.result = result }
}

// plans sets the plan.
func plans(probes ...func() worker.Task) step {
	return func(b *bench) {
		var tasks []worker.Task
		for _, each := range probes {
			tasks = append(tasks, each())
		}
		b.plan(tasks...)
	}
}

// probe is a planned probe. The edits are made when it is planned, because they may take the time.
func probe(name string, edits ...func(*worker.Task)) func() worker.Task {
	return func() worker.Task { return planned(name, edits...) }
}

func playAll(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				for _, do := range s.play {
					do(b)
				}
				b.stop()
				b.check(s.runs, s.changes)
				if diff := cmp.Diff(s.problems, b.problems); diff != "" || b.startups != len(s.runs["up"]) {
					t.Errorf("%d observed runs of startup probes, want %d; problems (-want +got):\n%s", b.startups, len(s.runs["up"]), diff)
				}
				for name, most := range b.most {
					if most > 1 {
						t.Errorf("%d concurrent runs of %s, want 1", most, name)
					}
				}
			})
		})
	}
}

func TestWorker(t *testing.T) {
	playAll(t, map[string]scenario{
		"first plan": {
			play:    []step{starts("a"), plans(probe("p")), after(15 * time.Second)},
			runs:    map[string][]string{"p": {"0s a", "10s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"containers not synced": {
			play: []step{func(b *bench) {
				b.plan(planned("p", restored(v1alpha1.ProbeSucceeded)))
				b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a"})
				pass(time.Minute)
			}},
		},
		"restored state, container removed": {
			play:    []step{plans(probe("p", restored(v1alpha1.ProbeSucceeded))), after(time.Second), synced, after(time.Minute)},
			changes: []string{"1s p Succeeded>Failed"},
		},
		"period edited": {
			play:    []step{starts("a"), plans(probe("p")), after(4 * time.Second), plans(probe("p", period(2*time.Second))), after(3 * time.Second)},
			runs:    map[string][]string{"p": {"0s a", "4s a", "6s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"same plan again": {
			play:    []step{starts("a"), plans(probe("p")), after(4 * time.Second), plans(probe("p")), after(7 * time.Second)},
			runs:    map[string][]string{"p": {"0s a", "10s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"handler changed during a run": {
			play: []step{func(b *bench) {
				b.result = func(target probing.Target, n int) (time.Duration, probing.Outcome, error) {
					if target.Exec.Command[0] == "p" && n == 2 {
						return 5 * time.Second, probing.Outcome{}, nil
					}
					return 0, probing.Outcome{Success: true}, nil
				}
				b.containerRuns("a")
				b.plan(planned("p"))
				pass(11 * time.Second)
				b.plan(planned("p", command("other")))
				pass(8 * time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a", "10s a"}, "other": {"11s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"pod IP changed": {
			play: []step{func(b *bench) {
				network := func(p *worker.Task) { p.Handler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}} }
				b.containerRuns("a")
				b.plan(planned("p", network))
				pass(time.Second)
				b.plan(planned("p", network, func(p *worker.Task) { p.PodIP = "10.0.0.2" }))
				pass(time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a", "1s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"pod IP of a command changed": {
			play: []step{
				starts("a"), plans(probe("p")), after(time.Second), plans(probe("p", func(p *worker.Task) { p.PodIP = "10.0.0.2" })),
				after(time.Second),
			},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p >Succeeded"},
		},
		"container restarts during a run": {
			play: []step{
				results(slow(3 * time.Second)), starts("a"), plans(probe("p")), after(11 * time.Second), exits, after(4 * time.Second),
				starts("b"), after(4 * time.Second),
			},
			runs: map[string][]string{"p": {"0s a", "10s a", "15s b"}},
			changes: []string{
				"3s p >Succeeded", "11s p Succeeded>Failed", "15s p Failed>Unknown", "18s p Unknown>Succeeded",
			},
		},
		"body no longer published during a run": {
			play: []step{func(b *bench) {
				published := func(publish bool) func(*worker.Task) {
					return func(p *worker.Task) { p.Target.HTTP = &probing.HTTP{PublishBody: publish} }
				}
				b.result = func(target probing.Target, _ int) (time.Duration, probing.Outcome, error) {
					return 3 * time.Second, probing.Outcome{Success: !target.HTTP.PublishBody}, nil
				}
				b.containerRuns("a")
				b.plan(planned("p", published(true)))
				pass(time.Second)
				b.plan(planned("p", published(false)))
				pass(4 * time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a", "1s a"}},
			changes: []string{"4s p >Succeeded"},
		},
		"timeout edited during a run": {
			play: []step{func(b *bench) {
				b.result = func(_ probing.Target, n int) (time.Duration, probing.Outcome, error) {
					if n == 1 {
						return time.Hour, probing.Outcome{}, nil
					}
					return 0, probing.Outcome{Success: true}, nil
				}
				b.containerRuns("a")
				b.plan(planned("p", timeout(time.Hour)))
				pass(5 * time.Second)
				b.plan(planned("p", timeout(time.Second)))
				pass(time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a", "5s a"}},
			changes: []string{"5s p >Succeeded"},
		},
		"probe removed from the plan": {
			play:    []step{results(slow(3 * time.Second)), starts("a"), plans(probe("p")), after(time.Second), plans(), after(time.Minute)},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"1s p gone"},
		},
		"probe removed and added again": {
			play:    []step{starts("a"), plans(probe("p")), after(time.Second), plans(), after(time.Second), plans(probe("p")), after(time.Second)},
			runs:    map[string][]string{"p": {"0s a", "2s a"}},
			changes: []string{"0s p >Succeeded", "1s p gone", "2s p >Succeeded"},
		},
		"probe of later plan with restored state": {
			play: []step{
				starts("a"), plans(), after(time.Second), plans(probe("p", restored(v1alpha1.ProbeFailed))), after(time.Second),
				plans(probe("p", restored(v1alpha1.ProbeUnknown))), after(time.Second),
			},
			runs:    map[string][]string{"p": {"1s a"}},
			changes: []string{"1s p Failed>Succeeded"},
		},
		"probe without a target": {
			play: []step{
				starts("a"), plans(probe("p", restored(v1alpha1.ProbeSucceeded), func(p *worker.Task) { p.Target = probing.Target{} })),
				after(25 * time.Second), exits, after(time.Second), starts("b"), after(time.Second), plans(probe("p")), after(time.Second),
				plans(probe("p", func(p *worker.Task) { p.Target = probing.Target{} })), after(15 * time.Second),
				plans(probe("p", command("other"))), after(time.Second),
			},
			runs:    map[string][]string{"p": {"27s b"}, "other": {"43s b"}},
			changes: []string{"25s p Succeeded>Failed", "26s p Failed>Unknown", "27s p Unknown>Succeeded"},
		},
		"run longer than the period": {
			play: []step{func(b *bench) {
				b.result = func(_ probing.Target, n int) (time.Duration, probing.Outcome, error) {
					if n == 1 {
						return 35 * time.Second, probing.Outcome{Success: true}, nil
					}
					return 0, probing.Outcome{Success: true}, nil
				}
				b.containerRuns("a")
				b.plan(planned("p"))
				pass(55 * time.Second)
			}},
			runs:    map[string][]string{"p": {"0s a", "35s a", "40s a", "50s a"}},
			changes: []string{"35s p >Succeeded"}, problems: []string{`30s p "WaitingForSlot"`, `35s p ""`},
		},
	})
}

// TestOneRunInFlight checks that the next run waits for a cancelled run that has not ended.
func TestOneRunInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stubborn *stubbornProber
		b := newBenchWith(t, func(p *prober) probing.Prober {
			stubborn = &stubbornProber{prober: p}
			return stubborn
		})
		b.containerRuns("a")
		b.plan(planned("p"))
		pass(time.Second)
		b.containerRuns("b")
		b.plan()
		b.plan(planned("p"))
		pass(30 * time.Second)
		if stubborn.most != 1 || stubborn.count != 2 {
			t.Errorf("%d runs, at most %d concurrent, want 2 and 1", stubborn.count, stubborn.most)
		}
		b.stop()
		pass(time.Minute)
	})
}

// stubbornProber takes twenty seconds and ignores its context.
type stubbornProber struct {
	*prober
	running, most, count int
}

func (p *stubbornProber) Probe(context.Context, probing.Target) (probing.Outcome, error) {
	p.mu.Lock()
	p.running++
	p.count++
	p.most = max(p.most, p.running)
	p.mu.Unlock()
	<-time.After(20 * time.Second)
	p.mu.Lock()
	p.running--
	p.mu.Unlock()
	return probing.Outcome{Success: true}, nil
}

func TestStop(t *testing.T) {
	cases := map[string]struct {
		prober func(*prober) probing.Prober
		within time.Duration
	}{
		"runs end with their context": {func(p *prober) probing.Prober { return p }, 0},
		"runs ignore their context":   {func(p *prober) probing.Prober { return &stubbornProber{prober: p} }, 2 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchWith(t, tc.prober)
				b.result = slow(time.Hour)
				b.containerRuns("a")
				b.plan(planned("p"), planned("q"), planned("r"))
				pass(time.Second)
				if took := b.stop(); took > tc.within {
					t.Errorf("stopped after %s, want within %s", took, tc.within)
				}
				if len(b.changes) > 0 || b.observed > 0 {
					t.Errorf("cancelled runs caused changes %v, %d observed runs", b.changes, b.observed)
				}
				pass(time.Minute)
			})
		})
	}
}
