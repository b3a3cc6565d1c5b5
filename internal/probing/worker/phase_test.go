// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

// fleet is a worker with a probe in each of many pods. All probes are named after their pod and
// have a period of ten seconds.
type fleet struct {
	discard
	*worker.Worker
	stop func()

	mu   sync.Mutex
	runs map[string][]time.Time
}

// newFleet starts a worker and plans the probes of running containers. It returns when the plan
// is in force.
func newFleet(t *testing.T, pods int, restored thresholds.State) *fleet {
	t.Helper()
	f := &fleet{runs: map[string][]time.Time{}}
	f.Worker = worker.New(worker.Options{
		Prober: f, Sink: f, Observe: func(worker.Run) {}, Phase: worker.PhaseOf, Now: time.Now,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	f.stop = func() { cancel(); <-done }

	var tasks []worker.Task
	for i := range pods {
		name := fmt.Sprintf("pod-%d", i)
		task := planned(name)
		task.Key.PodUID, task.Restored = types.UID(name), restored
		tasks = append(tasks, task)
		f.ContainerChanged(task.Key.ContainerKey, thresholds.ContainerRun{ID: name, Running: true, StartedAt: time.Now()})
	}
	f.ContainersSynced()
	f.SetPlan(tasks, func() {})
	synctest.Wait()
	return f
}

func (f *fleet) Probe(_ context.Context, target probing.Target) (probing.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := target.Exec.Command[0]
	f.runs[name] = append(f.runs[name], time.Now())
	return probing.Outcome{Success: true}, nil
}

// take returns the runs since the last call.
func (f *fleet) take() map[string][]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := f.runs
	f.runs = map[string][]time.Time{}
	return runs
}

// busiest returns the most runs within a tenth of the period.
func busiest(runs map[string][]time.Time) int {
	most, counts := 0, map[time.Time]int{}
	for _, times := range runs {
		for _, at := range times {
			tenth := at.Truncate(time.Second)
			counts[tenth]++
			most = max(most, counts[tenth])
		}
	}
	return most
}

// TestNoLockstep plans the probes of 110 running pods at once. All run at once, then spread over
// the period, at times that are the same after a restart.
func TestNoLockstep(t *testing.T) {
	const pods, settled = 110, 50 * time.Second
	synctest.Test(t, func(t *testing.T) {
		pass(3500 * time.Millisecond)
		f := newFleet(t, pods, thresholds.State{})
		expect.Equal(t, "first runs at once", pods, busiest(f.take()))
		pass(settled)
		f.take()
		pass(10 * time.Second)
		steady := f.take()
		// On average 11; the hash of the keys decides how evenly.
		if most := busiest(steady); most > 2*pods/10 {
			t.Errorf("%d of %d runs within a tenth of the period", most, pods)
		}
		f.stop()

		pass(1234 * time.Millisecond)
		f = newFleet(t, pods, thresholds.State{State: v1alpha1.ProbeSucceeded, LastProbe: time.Now(), LastTransition: time.Now()})
		pass(10*time.Second - 1)
		again := f.take()
		f.stop()
		for name, times := range steady {
			if len(times) != 1 || len(again[name]) != 1 || again[name][0].Sub(times[0])%(10*time.Second) != 0 {
				t.Fatalf("runs of %s at %s, after the restart at %s", name, times, again[name])
			}
		}
	})
}

func TestPhaseOf(t *testing.T) {
	key := identity.Key{
		ContainerKey: identity.ContainerKey{PodUID: "0a1b2c3d-0000-4000-8000-000000000001", Name: "main"},
		ID:           identity.ID{Marker: "game", Probe: "idle"},
	}
	// Agents of different versions must agree.
	if got := worker.PhaseOf(key); got < 0 || got >= 1 || fmt.Sprintf("%.6f", got) != "0.927458" {
		t.Errorf("PhaseOf() = %.6f", got)
	}
	seen := map[float64]bool{worker.PhaseOf(key): true}
	for _, other := range []identity.Key{
		{ContainerKey: identity.ContainerKey{PodUID: "other", Name: key.Name}, ID: key.ID},
		{ContainerKey: identity.ContainerKey{PodUID: key.PodUID, Name: "other"}, ID: key.ID},
		{ContainerKey: key.ContainerKey, ID: identity.ID{Marker: "other", Probe: key.Probe}},
		{ContainerKey: key.ContainerKey, ID: identity.ID{Marker: key.Marker, Probe: "other"}},
		{ContainerKey: key.ContainerKey, ID: identity.ID{Marker: key.Marker + key.Probe}},
	} {
		if phase := worker.PhaseOf(other); seen[phase] {
			t.Errorf("phase %f of %+v is not its own", phase, other)
		} else {
			seen[phase] = true
		}
	}
}

// answer is how long a probe takes that does not hang.
const answer = 5 * time.Millisecond

// tenants is a prober, and the sink and the observer of the honest namespace.
type tenants struct {
	t     *testing.T
	start time.Time
	// runs counts the runs that answered.
	runs map[identity.Key]int
}

// Probe takes as long as the address says.
func (*tenants) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	took := answer
	if target.TCP.Address == "hangs" {
		took = target.Timeout
	}
	select {
	case <-time.After(took):
		return probing.Outcome{Success: true}, nil
	case <-ctx.Done():
		return probing.Outcome{}, ctx.Err()
	}
}

func (tt *tenants) ProbeChanged(change worker.Change) {
	if problem := change.State.Problem; problem.Reason != "" && change.Pod.Namespace == "honest" {
		tt.t.Errorf("probe %s has the problem %+v", change.Key, problem)
	}
}

func (*tenants) ProbeGone(identity.Key) {}

// observe checks that no run waited. At the start, all probes run at once, and the last ones wait
// for less than a fifth of their period.
func (tt *tenants) observe(run worker.Run) {
	if run.Pod.Namespace != "honest" {
		return
	}
	tt.runs[run.Key]++
	wait := run.Duration - answer
	if run.Duration >= time.Second {
		wait = run.Duration - time.Second
	}
	began := time.Since(tt.start) - run.Duration
	if wait > 200*time.Millisecond || wait > 0 && began > 0 {
		tt.t.Errorf("probe %s waited %s at %s", run.Key, wait, began)
	}
}

// planOf returns network probes of pods, with a period of one second.
func planOf(namespace string, pods, probes int, timeout time.Duration, address func(pod, i int) string) (tasks []worker.Task) {
	for pod := range pods {
		name := types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(pod)}
		for i := range probes {
			tasks = append(tasks, worker.Task{
				Pod: name,
				Key: identity.Key{
					ContainerKey: identity.ContainerKey{PodUID: types.UID(name.String()), Name: "main"},
					ID:           identity.ID{Marker: "m", Probe: fmt.Sprint(i)},
				},
				Policy: thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
				Target: probing.Target{Handler: probing.HandlerTCP, Timeout: timeout, TCP: &probing.TCP{Address: address(pod, i)}},
			})
		}
	}
	return tasks
}

// TestHangingProbesDelayNobodyElse runs the probes of a full node. The probes that answer are not
// delayed, neither by those of another namespace that all hang, nor by some that hang in the same
// namespace and pods.
func TestHangingProbesDelayNobodyElse(t *testing.T) {
	answers := func(int, int) string { return "answers" }
	hangs := func(int, int) string { return "hangs" }
	some := func(pod, i int) string {
		if i == 0 && pod%3 == 0 {
			return "hangs"
		}
		return "answers"
	}
	cases := map[string][]worker.Task{
		"full node, some hang": planOf("honest", 250, 8, time.Second, some),
		"another namespace hangs for five minutes": append(
			planOf("hostile", 50, 32, 5*time.Minute, hangs), planOf("honest", 50, 8, time.Second, answers)...),
		"one pod of another namespace hangs": append(
			planOf("hostile", 1, 1000, 5*time.Minute, hangs), planOf("honest", 200, 8, time.Second, some)...),
	}
	for name, tasks := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 20
				tt := &tenants{t: t, start: time.Now(), runs: map[identity.Key]int{}}
				gate := slots.New(probers.NetworkSlots, nil)
				stop := startWorker(t.Context(), worker.Options{
					Prober: gate.Limit(tt), Sink: tt, Observe: tt.observe, Phase: worker.PhaseOf, Now: time.Now,
				}, tasks)
				pass(seconds * time.Second)
				stop()
				for i := range tasks {
					task := &tasks[i]
					// While a probe moves to its phase, two runs are up to one and a half periods apart.
					if got := tt.runs[task.Key]; task.Pod.Namespace == "honest" && got < seconds-4 {
						t.Errorf("probe %s ran %d times in %d periods", task.Key, got, seconds)
					}
				}
			})
		})
	}
}
