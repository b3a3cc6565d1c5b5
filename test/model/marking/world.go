// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// fault is what happens to a request.
type fault string

const (
	none        fault = ""
	refused     fault = ": the API server fails"
	unreachable fault = ": the API server is not reached"
	lost        fault = ": the response is lost"
	crashBefore fault = ": the process ends before it"
	crashAfter  fault = ": the process ends after it"
)

// faults are the probabilities of faults, of events between the requests of a reconcile, and of caches that lag
// at the start of a process. They are chosen by the seed.
type faults struct {
	fail, lose, crash, between, stale float64
}

func randomFaults(r *rand.Rand) faults {
	f := faults{}
	for _, p := range []*float64{&f.fail, &f.lose, &f.crash, &f.between} {
		if r.IntN(2) == 0 {
			*p = 0.15 * r.Float64()
		}
	}
	if f.crash /= 4; r.IntN(2) == 0 {
		f.stale = r.Float64()
	}
	return f
}

// world is one run. The goroutine of the run decides about everything: what is delivered, which request is handled,
// and how long time passes. The goroutines of agents only run until they wait.
type world struct {
	ctx     context.Context
	running sync.WaitGroup
	server  *server
	// rand decides within a step.
	rand   *rand.Rand
	faults faults
	// chaos is whether faults happen, depth the number of reconciles that have been interrupted.
	// In a strict phase without faults, each request of a manager must change something, although its caches lag.
	chaos, strict bool
	depth         int

	managers []*manager
	nodes    map[string]*node
	// names are those of the nodes.
	names   []string
	watches []*watch
	// started is the number of processes that were started, created that of markers and containers.
	started, created int

	// mu guards what the goroutines of agents use.
	mu       sync.Mutex
	calls    []*call
	history  history
	outcomes map[string]bool
	// messages are the numbers of what probes print, varying those that print something else in each run.
	messages map[string]int
	varying  map[string]bool
	// unstarted are the IDs of the containers whose startup probes fail.
	unstarted map[string]bool

	tracing bool
	start   time.Time
	lines   []string
	err     error
}

// outcome returns the current result of a probe, and remembers that it was possible. The caller holds mu, or no
// agent runs.
func (w *world) outcome(pod types.UID, token string) bool {
	key := string(pod) + " " + token
	success, set := w.outcomes[key]
	if !set {
		success = len(key)%2 == 0
	}
	state := v1alpha1.ProbeFailed
	if success {
		state = v1alpha1.ProbeSucceeded
	}
	if w.history.states[pod] == nil {
		w.history.states[pod] = map[string]map[v1alpha1.ProbeState]bool{}
	}
	if w.history.states[pod][token] == nil {
		w.history.states[pod][token] = map[v1alpha1.ProbeState]bool{}
	}
	w.history.states[pod][token][state] = true
	return success
}

// newWorld returns the world of a case: nodes with agents, and one manager.
func newWorld(ctx context.Context, c *Case, tracing bool) *world {
	r := rand.New(rand.NewPCG(c.Seed, 0)) //nolint:gosec // a run is a function of its seed
	w := &world{
		ctx: ctx, server: newServer(), rand: r, nodes: map[string]*node{}, outcomes: map[string]bool{}, history: newHistory(),
		tracing: tracing, start: time.Now(), faults: randomFaults(r),
		messages: map[string]int{}, varying: map[string]bool{}, unstarted: map[string]bool{},
	}
	w.server.Wrote = func(k kind, e event) {
		w.record(e.By, k, e)
		w.noteMove(e.By, e)
		w.noteLost(k, e)
		w.checkWrite(e.By, k, e)
	}
	for i := range 1 + r.IntN(3) {
		name := fmt.Sprintf("node-%d", i)
		w.names = append(w.names, name)
		w.createAgentPod(name, true)
		w.createNode(name)
	}
	w.trace("faults %+v", w.faults)
	for _, name := range w.names {
		w.startAgent(w.nodes[name]) //nolint:contextcheck // the run has one context
	}
	w.managers = []*manager{w.newManager(func() int { return 0 })} //nolint:contextcheck // the run has one context
	return w
}

// record remembers what decides which marks are allowed.
func (w *world) record(by string, k kind, e event) {
	switch o := e.After.(type) {
	case *corev1.Pod:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.labels[o.UID], w.history.nodes[o.UID] = append(w.history.labels[o.UID], o.Labels), o.Spec.NodeName
	case *v1alpha1.PodProbeMarker:
		if by == "user" {
			w.history.versions = append(w.history.versions, o)
		}
	}
	if w.tracing {
		what := "changes"
		if e.After == nil {
			what = "is gone"
		}
		w.trace("  %s %s %s: version %d by %s%s", k, keyText(e.Key), what, e.Version, by, describe(e.After))
	}
}

// fault decides what happens to the next request.
func (w *world) fault() fault {
	if !w.chaos {
		return none
	}
	f := w.faults
	switch n := w.rand.Float64(); {
	case n < f.fail/2:
		return refused
	case n < f.fail:
		return unreachable
	case n < f.fail+f.lose:
		return lost
	case n < f.fail+f.lose+f.crash/2:
		return crashBefore
	case n < f.fail+f.lose+f.crash:
		return crashAfter
	}
	return none
}

// refusal returns the error of a refused request, which follows from the state of the server.
func (w *world) refusal() error {
	switch w.server.Version % 4 {
	case 0:
		return apierrors.NewTooManyRequests("the API server is overloaded", int(w.server.Version/4%3))
	case 1:
		return apierrors.NewServiceUnavailable("the API server is starting")
	case 2:
		return apierrors.NewTimeoutError("the storage is slow", 0)
	default:
		return apierrors.NewInternalError(errLost)
	}
}

// between lets something happen between two requests of a reconcile.
func (w *world) between() {
	if !w.chaos || w.depth >= 2 || w.rand.Float64() >= w.faults.between {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	if w.rand.IntN(4) == 0 {
		w.operate(w.rand.IntN(len(operations())))
	}
	for range 1 + w.rand.IntN(6) {
		w.churn()
	}
}

// churn lets one part of the system make a small step.
func (w *world) churn() {
	r := w.rand
	switch n := r.IntN(100); {
	case n < 20:
		w.anyManager(func(m *manager) { m.cache.of[r.IntN(len(m.cache.of))].advance(1 + r.IntN(4)) })
	case n < 45:
		w.anyManager(func(m *manager) { m.deliver(r, 1+r.IntN(4)) })
	case n < 70:
		w.anyManager(func(m *manager) { m.reconcile(r) })
	case n < 82:
		synctest.Wait()
		w.serveOne()
	case n < 87:
		if len(w.watches) > 0 {
			w.deliver(w.watches[r.IntN(len(w.watches))], 1+r.IntN(3))
		}
	case n < 91:
		w.anyNode().observe(1 + r.IntN(3))
	case n < 94:
		w.kubelet(r.IntN(3))
	default:
		w.pass(time.Duration(r.ExpFloat64() * float64(time.Second)))
	}
}

func (w *world) anyManager(do func(*manager)) {
	w.managers = slices.DeleteFunc(w.managers, func(m *manager) bool { return m.dead })
	if len(w.managers) > 0 {
		do(w.managers[w.rand.IntN(len(w.managers))])
	}
}

func (w *world) anyNode() *node { return w.nodes[w.names[w.rand.IntN(len(w.names))]] }

// serveOne answers one of the waiting requests of agents, and reports whether there was one.
func (w *world) serveOne() bool {
	w.mu.Lock()
	w.calls = slices.DeleteFunc(w.calls, func(c *call) bool { return c.ended.Err() != nil || c.waits.Err() != nil })
	slices.SortStableFunc(w.calls, func(a, b *call) int { return strings.Compare(a.String(), b.String()) })
	if len(w.calls) == 0 {
		w.mu.Unlock()
		return false
	}
	at := w.rand.IntN(len(w.calls))
	next := w.calls[at]
	w.calls = slices.Delete(w.calls, at, at+1)
	w.mu.Unlock()
	fault := w.fault()
	if fault == crashBefore || fault == crashAfter {
		fault = none
	}
	w.serve(next, fault)
	synctest.Wait()
	return true
}

// pass lets time pass.
func (w *world) pass(d time.Duration) { time.Sleep(max(d, time.Millisecond)) } //nolint:forbidigo // the time is virtual

func (w *world) fail(err error) {
	if w.err == nil {
		w.err = err
		w.trace("FAILED: %v", err)
	}
}

func (w *world) trace(format string, args ...any) {
	if w.tracing {
		w.lines = append(w.lines, fmt.Sprintf("%9.3fs  %s", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...)))
	}
}
