// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		acceptAll()
	}
	goleak.VerifyTestMain(m)
}

// startWorker runs a worker that knows the containers of the tasks, until stop returns.
func startWorker(ctx context.Context, options worker.Options, tasks []worker.Task) (stop func()) {
	w := worker.New(options)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	for i := range tasks {
		w.ContainerChanged(tasks[i].Key.ContainerKey, thresholds.ContainerRun{ID: "c", Running: true, StartedAt: time.Now()})
	}
	w.SetPlan(tasks, func() {})
	w.ContainersSynced()
	return func() {
		cancel()
		<-done
	}
}

// prober records its runs by command, and how many of each probe run at the same time. Function result
// returns the duration and result of the nth run.
type prober struct {
	start time.Time

	mu       sync.Mutex
	result   func(target probing.Target, n int) (time.Duration, probing.Outcome, error)
	runs     map[string][]string
	inFlight map[string]int
	most     map[string]int
}

func (p *prober) Probe(ctx context.Context, target probing.Target) (probing.Outcome, error) {
	name, probe := target.Exec.Command[0], target.Owner.Probe
	p.mu.Lock()
	p.runs[name] = append(p.runs[name], fmt.Sprintf("%s %s", time.Since(p.start), target.ContainerID))
	p.inFlight[probe]++
	p.most[probe] = max(p.most[probe], p.inFlight[probe])
	took, outcome, err := p.result(target, len(p.runs[name]))
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.inFlight[probe]--
		p.mu.Unlock()
	}()
	select {
	case <-time.After(took):
		return outcome, err
	case <-ctx.Done():
		return probing.Outcome{}, ctx.Err()
	}
}

// bench is a worker in a synctest bubble.
type bench struct {
	*worker.Worker
	*prober
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}

	changes []string
	// observed counts the observed runs, and startups those of startup probes.
	observed, startups int
	// problems are the changes of problems, troubled the present ones by probe.
	problems []string
	troubled map[string]v1alpha1.ProbeErrorReason
	// state is the newest state of any probe.
	state thresholds.State
}

// ProbeChanged records transitions: time, name and states.
func (b *bench) ProbeChanged(change worker.Change) {
	key, state, transition := change.Key, change.State, change.Transition
	expect.Equal(b.t, "change of pod", podName(), change.Pod)
	b.problem(change)
	b.mu.Lock()
	b.state = state
	b.mu.Unlock()
	if transition == nil {
		return
	}
	expect.Equal(b.t, "state after a transition", transition.To, state.State)
	b.changes = append(b.changes, fmt.Sprintf("%s %s %s>%s", transition.At.Sub(b.start), key.Probe, transition.From, transition.To))
}

// problemMessage returns the message of the newest problem while the worker runs.
func (b *bench) problemMessage() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Problem.Message
}

func (b *bench) ProbeGone(key identity.Key) {
	b.changes = append(b.changes, fmt.Sprintf("%s %s gone", time.Since(b.start), key.Probe))
}

func (b *bench) observe(run worker.Run) {
	expect.Equal(b.t, "run of pod", podName(), run.Pod)
	b.observed++
	if run.Startup {
		b.startups++
	}
}

// newBench starts a worker without phases. By default, its probes succeed immediately.
func newBench(t *testing.T) *bench {
	return newBenchWith(t, func(p *prober) probing.Prober { return p })
}

// newBenchWithin starts a worker with limits.
func newBenchWithin(t *testing.T, limits pace.Limits) *bench {
	return startBench(t, func(p *prober) probing.Prober { return p }, limits)
}

// newBenchWith starts a worker with a wrapped prober.
func newBenchWith(t *testing.T, wrap func(*prober) probing.Prober) *bench {
	return startBench(t, wrap, pace.Limits{})
}

func startBench(t *testing.T, wrap func(*prober) probing.Prober, limits pace.Limits) *bench {
	ctx, cancel := context.WithCancel(t.Context())
	b := &bench{t: t, troubled: map[string]v1alpha1.ProbeErrorReason{}, cancel: cancel, done: make(chan struct{}), prober: &prober{
		start:    time.Now(),
		runs:     map[string][]string{},
		inFlight: map[string]int{},
		most:     map[string]int{},
		result: func(probing.Target, int) (time.Duration, probing.Outcome, error) {
			return 0, probing.Outcome{Success: true}, nil
		},
	}}
	b.Worker = worker.New(worker.Options{
		Prober: wrap(b.prober), Sink: b, Observe: b.observe, Limits: limits, Now: time.Now,
	})
	go func() {
		defer close(b.done)
		b.Run(ctx)
	}()
	return b
}

// check compares the runs of each command and the transitions.
func (b *bench) check(runs map[string][]string, changes []string) {
	b.t.Helper()
	expect.Equal(b.t, "runs", runs, b.runs, cmpopts.EquateEmpty())
	expect.Equal(b.t, "changes", changes, b.changes, cmpopts.EquateEmpty())
}

// stop stops the worker and returns how long that took.
func (b *bench) stop() time.Duration {
	start := time.Now()
	b.cancel()
	<-b.done
	return time.Since(start)
}

// plan sets the plan and waits until it is in force.
func (b *bench) plan(probes ...worker.Task) {
	inForce := make(chan struct{})
	b.SetPlan(probes, func() { close(inForce) })
	<-inForce
}

// pass advances the time.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func podName() types.NamespacedName { return types.NamespacedName{Namespace: "games", Name: "pod"} }

func container() identity.ContainerKey { return identity.ContainerKey{PodUID: "uid", Name: "main"} }

// planned returns the task of a probe that is named after its command. Its period is ten
// seconds.
func planned(name string, edits ...func(*worker.Task)) worker.Task {
	p := worker.Task{
		Pod:     podName(),
		Key:     identity.Key{ContainerKey: container(), ID: identity.ID{Marker: "m", Probe: name}},
		Policy:  thresholds.Policy{Period: 10 * time.Second, SuccessThreshold: 1, FailureThreshold: 1},
		Handler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{name}}},
		Target:  probing.Target{Handler: probing.HandlerExec, Timeout: time.Second, Exec: &probing.Exec{Command: []string{name}}},
	}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func (b *bench) containerRuns(id string) {
	b.ContainerChanged(container(), thresholds.ContainerRun{ID: id, Running: true, StartedAt: time.Now()})
	b.ContainersSynced()
	synctest.Wait()
}

func period(d time.Duration) func(*worker.Task) {
	return func(p *worker.Task) { p.Policy.Period = d }
}

func timeout(d time.Duration) func(*worker.Task) {
	return func(p *worker.Task) { p.Target.Timeout = d }
}

func command(name string) func(*worker.Task) {
	return func(p *worker.Task) {
		p.Handler.Exec = &corev1.ExecAction{Command: []string{name}}
		p.Target.Exec = &probing.Exec{Command: []string{name}}
	}
}

func restored(state v1alpha1.ProbeState) func(*worker.Task) {
	return func(p *worker.Task) {
		p.Restored = thresholds.State{State: state, LastProbe: time.Now(), LastTransition: time.Now()}
	}
}

func slow(d time.Duration) func(probing.Target, int) (time.Duration, probing.Outcome, error) {
	return func(probing.Target, int) (time.Duration, probing.Outcome, error) {
		return d, probing.Outcome{Success: true}, nil
	}
}
