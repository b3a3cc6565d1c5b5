// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/logging"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/worker"
)

const (
	// writeTimeout bounds one write, so that a connection that died silently is noticed.
	writeTimeout = 10 * time.Second

	// lookInterval is how soon a run that brings nothing but its time is looked at.
	lookInterval = 30 * time.Second

	// repairDelay is how soon a status that somebody else has changed is written again.
	repairDelay = time.Second

	// flushTimeout bounds the last write before the agent ends, and its events.
	flushTimeout = 2 * time.Second
)

// statusWriter writes the status of the node's object: a nodeClient.
type statusWriter interface {
	// WriteStatus sends a patch made by patchOf and returns the new resourceVersion.
	WriteStatus(ctx context.Context, patch []byte) (resourceVersion string, err error)
}

// eventEmitter tells of changed states: events.
type eventEmitter interface {
	// Emit hands over the events of a report that has been written.
	Emit(reported []report.Event)
}

// reporter keeps what is known of the probes and writes it as report.Decide says: the
// first news at once, then at most one write in an interval. While the API server is away
// it tries on, always with the newest states.
type reporter struct {
	writer statusWriter
	// interval is the least time between the starts of two writes.
	interval time.Duration
	metrics  *agentmetrics.Metrics
	log      logr.Logger
	// wake has a token when wakeAt has moved.
	wake chan struct{}

	mu     sync.Mutex
	plan   report.Plan
	states report.States
	ledger report.Ledger
	// read is whether ledger has been read from an object yet.
	read bool
	// uid is the object whose plan is in force; empty before the first.
	uid types.UID
	// version is the resourceVersion that ledger speaks of.
	version string
	// observed is what was last seen on the API server, nil if nothing was.
	observed *v1alpha1.NodePodProbe
	// writing is whether a write is under way.
	writing bool
	// wakeAt is when to decide next; zero while nothing is to be decided.
	wakeAt time.Time

	// Only the writing goroutine uses these.
	notBefore time.Time
	backoff   wait.Backoff
	failing   bool
}

func newReporter(writer statusWriter, interval time.Duration, metrics *agentmetrics.Metrics, log logr.Logger) *reporter {
	return &reporter{
		writer: writer, interval: interval, metrics: metrics, log: log,
		wake: make(chan struct{}, 1), states: report.States{}, backoff: newBackoff(),
	}
}

// newBackoff spaces the tries while the API server is away. Five seconds at most: what
// waits is news.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 32, Cap: 5 * time.Second}
}

// ProbeChanged receives the newest state of a probe.
func (r *reporter) ProbeChanged(change worker.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := change.Key
	before := r.states[key]
	r.states[key] = change.State
	now := time.Now()
	switch transition := change.Transition; {
	case transition != nil:
		r.metrics.Changed(string(transition.To))
		r.log.Info("Probe changed state", "pod", change.Pod.String(), "marker", change.Pod.Namespace+"/"+key.Marker,
			"probe", key.String(), "container", key.Name,
			"from", string(cmp.Or(transition.From, "none")), "to", string(transition.To), "message", transition.Message)
		r.wakeBy(now)
	case before.Message != change.State.Message:
		r.wakeBy(later(now, r.ledger.MessageDue(key, change.State.LastTransition)))
	default:
		r.wakeBy(now.Add(lookInterval))
	}
}

// ProbeGone receives a probe that no longer runs.
func (r *reporter) ProbeGone(key probeid.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
}

// podName returns the name of a pod. It returns false if the plan in force lacks the pod.
func (r *reporter) podName(uid types.UID) (types.NamespacedName, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.plan.Pods {
		if pod := &r.plan.Pods[i]; types.UID(pod.UID) == uid {
			return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, true
		}
	}
	return types.NamespacedName{}, false
}

// InForce tells that the plan of object stands, and that all states that the change of
// plans brought have been told.
func (r *reporter) InForce(object *v1alpha1.NodePodProbe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = planOf(object)
	if object == nil {
		return
	}
	if r.uid != object.UID {
		r.uid, r.version = object.UID, object.ResourceVersion
		if r.read {
			r.ledger = r.ledger.Adopt(object.Status)
		} else {
			r.ledger, r.read = report.Read(object.Status), true
		}
	}
	r.wakeBy(time.Now())
}

// Observe takes in what is stored on the API server. Where it is gone, nothing is
// written; where somebody else has changed the status, it is repaired.
func (r *reporter) Observe(object *v1alpha1.NodePodProbe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	returned := r.observed == nil && object != nil
	r.observed = object
	if returned {
		r.wakeBy(time.Now())
	}
	r.repair()
}

// present tells whether the object whose plan is in force is there to be reported to.
func (r *reporter) present() bool { return r.observed != nil && r.observed.UID == r.uid }

// repair has the status written again where what was last seen on the API server is newer
// than the last report and tells other states. A write under way may be what was seen, so
// it is awaited.
func (r *reporter) repair() {
	if r.writing || !r.present() {
		return
	}
	newer, err := resourceversion.CompareResourceVersion(r.observed.ResourceVersion, r.version)
	if err != nil || newer <= 0 || report.SameStates(r.observed.Status, r.ledger.Status()) {
		return
	}
	r.ledger, r.version = r.ledger.Adopt(r.observed.Status), r.observed.ResourceVersion
	r.wakeBy(time.Now().Add(repairDelay))
}

// wakeBy has the next decision made at t at the latest.
func (r *reporter) wakeBy(t time.Time) {
	if !r.wakeAt.IsZero() && !t.Before(r.wakeAt) {
		return
	}
	r.wakeAt = t
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run writes reports until ctx ends, and then what is left to be reported. Of each it
// hands the changes to events.
func (r *reporter) run(ctx context.Context, events eventEmitter) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			r.report(flush, events)
			return
		case <-r.wake:
		case <-timer.C:
			r.report(ctx, events)
		}
		if at := r.next(); !at.IsZero() {
			timer.Reset(time.Until(later(at, r.notBefore)))
		}
	}
}

// next returns when to decide.
func (r *reporter) next() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wakeAt
}

// attempt is one report on its way.
type attempt struct {
	uid    types.UID
	plan   report.Plan
	status v1alpha1.NodePodProbeStatus
}

// decide returns what is to be written now, if anything.
func (r *reporter) decide(now time.Time) (attempt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wakeAt.IsZero() || r.wakeAt.After(now) {
		return attempt{}, false
	}
	r.wakeAt = time.Time{}
	if !r.present() {
		return attempt{}, false
	}
	decision := report.Decide(now, r.plan, r.ledger, r.states)
	if !decision.Next.IsZero() {
		r.wakeBy(decision.Next)
	}
	r.writing = decision.Write
	return attempt{uid: r.uid, plan: r.plan, status: decision.Status}, decision.Write
}

// report writes what is due.
func (r *reporter) report(ctx context.Context, events eventEmitter) {
	now := time.Now()
	a, write := r.decide(now)
	if !write {
		return
	}
	r.notBefore = now.Add(r.interval)
	version, err := r.write(ctx, a)
	if err != nil {
		r.failed(ctx, now, err)
		return
	}
	if r.failing {
		r.log.Info("Writing reports again")
	}
	r.failing, r.backoff = false, newBackoff()
	events.Emit(r.wrote(now, a, version))
}

func (r *reporter) write(ctx context.Context, a attempt) (string, error) {
	patch, err := patchOf(a.uid, a.status)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	version, err := r.writer.WriteStatus(ctx, patch)
	r.metrics.Reported(len(patch), err)
	return version, err
}

// failed has the report tried again. Whatever the error is, the newest states are what is
// to be written; an object that has gone, the watch will tell of.
func (r *reporter) failed(ctx context.Context, now time.Time, err error) {
	if !r.failing && ctx.Err() == nil {
		r.log.Error(err, "Writing the report, trying on")
		r.failing = true
	}
	r.notBefore = time.Now().Add(r.backoff.Step())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	r.repair()
	r.wakeBy(now)
}

// wrote enters a written report and returns what it changed. What was written to an
// object that has been replaced since is as good as not written.
func (r *reporter) wrote(now time.Time, a attempt, version string) []report.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	if r.uid != a.uid {
		return nil
	}
	events := r.ledger.Events(a.plan, a.status)
	for _, e := range events {
		r.log.V(logging.Writes).Info("Reported state", "pod", e.Pod.Namespace+"/"+e.Pod.Name, "probe", e.Probe.Name, "state", string(e.State))
	}
	r.ledger, r.version = r.ledger.Wrote(now, a.status), version
	r.repair()
	return events
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
