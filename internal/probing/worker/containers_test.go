// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

// TestStaticPods has a planned mirror pod, whose static pod has another UID in the runtime.
func TestStaticPods(t *testing.T) {
	runtime := identity.ContainerKey{PodUID: "hash", Name: "main"}
	runs := func(b *bench, pod, id string) {
		b.ContainerChanged(runtime, thresholds.ContainerRun{
			ID: id, Running: true, StartedAt: time.Now(), Pod: types.NamespacedName{Namespace: "games", Name: pod},
		})
		b.ContainersSynced()
	}
	mirror := func(uid, runtime types.UID) worker.Task {
		return planned("p", func(p *worker.Task) { p.Key.PodUID, p.RuntimeUID = uid, runtime })
	}
	playAll(t, map[string]scenario{
		"plan before container": {
			play: []step{func(b *bench) {
				b.plan(mirror("m1", "hash"))
				runs(b, "pod", "a")
				pass(5 * time.Second)
				b.ContainerUnknown(runtime)
				pass(time.Minute)
				b.ContainerGone(runtime)
			}},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p >Succeeded", "1m5s p Succeeded>Failed"},
		},
		"recreated mirror pod": {
			play: []step{func(b *bench) {
				runs(b, "pod", "a")
				b.plan(mirror("m1", "hash"))
				pass(5 * time.Second)
				b.plan(mirror("m2", "hash"))
				pass(time.Second)
				runs(b, "pod", "b")
				pass(time.Second)
			}},
			runs: map[string][]string{"p": {"0s a", "5s a", "6s b"}},
			changes: []string{
				"0s p >Succeeded", "5s p gone", "5s p >Succeeded", "6s p Succeeded>Unknown", "6s p Unknown>Succeeded",
			},
		},
		"not described": {
			play: []step{func(b *bench) {
				b.ContainerUnknown(runtime)
				b.ContainersSynced()
				b.plan(mirror("m1", "hash"))
				pass(time.Minute)
				runs(b, "pod", "a")
				pass(time.Second)
			}},
			runs:    map[string][]string{"p": {"1m0s a"}},
			changes: []string{"1m0s p >Succeeded"},
		},
		"changed annotation": {
			play: []step{func(b *bench) {
				runs(b, "pod", "a")
				b.plan(mirror("m1", "hash"))
				pass(5 * time.Second)
				b.plan(mirror("m1", "other"))
				runs(b, "pod", "b")
				pass(time.Minute)
			}},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p >Succeeded", "5s p gone"},
		},
		"forged annotation": {
			play: []step{func(b *bench) {
				runs(b, "victim", "a")
				b.plan(mirror("m1", "hash"))
				pass(5 * time.Second)
				runs(b, "victim", "b")
				pass(time.Minute)
			}},
		},
	})
}

// TestContainersOfOtherPods has a plan with the UID of another pod than it names.
func TestContainersOfOtherPods(t *testing.T) {
	runs := func(pod types.NamespacedName, want map[string][]string, changes ...string) scenario {
		return scenario{
			play: []step{func(b *bench) {
				b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: time.Now(), Pod: pod})
				b.ContainersSynced()
				b.plan(planned("p"))
				pass(time.Second)
			}},
			runs: want, changes: changes,
		}
	}
	playAll(t, map[string]scenario{
		"planned pod":       runs(podName(), map[string][]string{"p": {"0s a"}}, "0s p >Succeeded"),
		"another namespace": runs(types.NamespacedName{Namespace: "kube-system", Name: "pod"}, nil),
		"another name":      runs(types.NamespacedName{Namespace: "games", Name: "victim"}, nil),
	})
}

// Containers are not listed while nothing is planned, and may restart meanwhile.
func TestPlanWaitsForFreshContainers(t *testing.T) {
	playAll(t, map[string]scenario{"restarted": {
		play: []step{func(b *bench) {
			b.containerRuns("a")
			b.ContainersStale()
			b.plan(planned("p", func(p *worker.Task) {
				p.Restored = thresholds.State{State: v1alpha1.ProbeSucceeded, ContainerID: "b"}
			}))
			pass(time.Second)
			b.containerRuns("b")
			pass(time.Second)
		}},
		runs: map[string][]string{"p": {"1s b"}},
	}})
}

func TestUnknownContainerPausesOnlyItsProbes(t *testing.T) {
	other := identity.ContainerKey{PodUID: "uid", Name: "other"}
	ofOther := func(p *worker.Task) { p.Key.ContainerKey = other }
	otherRuns := func(b *bench) {
		b.ContainerChanged(other, thresholds.ContainerRun{ID: "o", Running: true, StartedAt: time.Now()})
	}
	playAll(t, map[string]scenario{
		"from the start": {
			play: []step{func(b *bench) {
				otherRuns(b)
				b.ContainerUnknown(container())
				b.ContainersSynced()
				b.plan(planned("p", restored(v1alpha1.ProbeSucceeded)), planned("q", ofOther))
				pass(15 * time.Second)
				b.plan(planned("p", period(time.Second)), planned("q", ofOther), planned("new"))
				pass(10 * time.Second)
			}},
			runs:    map[string][]string{"q": {"0s o", "10s o", "20s o"}},
			changes: []string{"0s q >Succeeded"},
		},
		"later": {
			play:    []step{starts("a"), plans(probe("p")), after(15 * time.Second), unknown, after(time.Minute), starts("b")},
			runs:    map[string][]string{"p": {"0s a", "10s a", "1m15s b"}},
			changes: []string{"0s p >Succeeded", "1m15s p Succeeded>Unknown", "1m15s p Unknown>Succeeded"},
		},
		"during a run": {
			play: []step{results(slow(3 * time.Second)), starts("a"), plans(probe("p")), after(time.Second), unknown, after(time.Minute)},
			runs: map[string][]string{"p": {"0s a"}},
		},
		"until it is gone": {
			play:    []step{starts("a"), plans(probe("p")), after(time.Second), unknown, after(time.Minute), removed, after(time.Minute)},
			runs:    map[string][]string{"p": {"0s a"}},
			changes: []string{"0s p >Succeeded", "1m1s p Succeeded>Failed"},
		},
	})
}

// TestMovedProbeReportsItsContainer checks that the sink knows the new container of a moved
// probe when the plan is in force, whether or not the agent runs when it moves. Otherwise, an
// agent restart could discard the state.
func TestMovedProbeReportsItsContainer(t *testing.T) {
	restored := func(p *worker.Task) { p.Restored = thresholds.State{State: v1alpha1.ProbeSucceeded, ContainerID: "a"} }
	for name, tc := range map[string]struct {
		first     []worker.Task
		other, id string
	}{
		"while the agent runs":                             {first: []worker.Task{planned("p")}, other: "other", id: "b"},
		"while no agent runs":                              {other: "other", id: "b"},
		"to one that has not started, while no agent runs": {other: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.ContainerChanged(identity.ContainerKey{PodUID: "uid", Name: "other"}, thresholds.ContainerRun{ID: "b", Running: true, StartedAt: time.Now()})
				b.containerRuns("a")
				b.plan(tc.first...)
				pass(time.Second)
				b.result = slow(time.Minute)
				b.plan(planned("p", inContainer(tc.other), restored))
				if b.state.State != v1alpha1.ProbeSucceeded || b.state.ContainerID != tc.id {
					t.Errorf("state %q of container %q, want Succeeded of %q", b.state.State, b.state.ContainerID, tc.id)
				}
				b.stop()
			})
		})
	}
}

// TestEndOfContainerWithFailedProbe checks that the end of a container replaces the message and
// clears the problem of a probe that has failed before.
func TestEndOfContainerWithFailedProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.result = func(_ probing.Target, n int) (time.Duration, probing.Outcome, error) {
			if n > 1 {
				return 0, probing.Outcome{}, errors.New("no such file")
			}
			return 0, probing.Outcome{Message: "no"}, nil
		}
		b.containerRuns("a")
		b.plan(planned("p"))
		pass(15 * time.Second)
		if b.troubled["p"] != v1alpha1.ProbeCannotRun {
			t.Fatalf("problem %q, want CannotRun", b.troubled["p"])
		}
		b.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Reason: "exited with code 1"})
		pass(time.Second)
		if want := "the container is not running: exited with code 1"; b.state.Message != want || b.troubled["p"] != "" {
			t.Errorf("message %q and problem %q, want %q and none", b.state.Message, b.troubled["p"], want)
		}
		b.stop()
	})
}
