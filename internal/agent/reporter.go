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
	// writeTimeout bounds one write, in case the connection is lost without an error.
	writeTimeout = 10 * time.Second

	// repairDelay is the delay before the next write after another client has changed the
	// status.
	repairDelay = time.Second

	// flushTimeout bounds the last write before the agent stops.
	flushTimeout = 2 * time.Second
)

// statusWriter writes the status of the node's object: a nodeClient.
type statusWriter interface {
	// WriteStatus sends a patch of patchOf and returns the new resourceVersion.
	WriteStatus(ctx context.Context, patch []byte) (resourceVersion string, err error)
}

// eventEmitter writes events: events.
type eventEmitter interface {
	// Emit queues the events of a report that has been written.
	Emit(reported []report.Event)
}

// reporter stores the states of the probes and writes them when report.Decide requests it:
// the first change immediately, then at most one write per interval. While the API server
// is unavailable it retries, always with the newest states.
type reporter struct {
	writer statusWriter
	// interval is the minimum time between the starts of two writes.
	interval time.Duration
	metrics  *agentmetrics.Metrics
	log      logr.Logger
	// wake has a token if wakeAt has changed.
	wake chan struct{}

	mu     sync.Mutex
	plan   report.Plan
	states report.States
	ledger report.Ledger
	// announcer decides on the events for errors.
	announcer *report.Announcer
	// read reports whether the ledger was read from an object.
	read bool
	// uid is the UID of the object whose plan is in force. It is empty before the first.
	uid types.UID
	// version is the resourceVersion that ledger belongs to.
	version string
	// observed is the newest object from the watch, or nil if there is none.
	observed *v1alpha1.NodePodProbe
	// writing reports whether a write is in progress.
	writing bool
	// wakeAt is when to decide next. It is zero if no decision is scheduled.
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

// newBackoff returns the back-off of failed writes. It is at most five seconds, so that
// states are written soon after an outage.
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
	}
	if before.Problem != change.State.Problem {
		// One decision serves many runs, each of which may change the message of an error.
		r.wakeBy(now.Add(report.ErrorDelay))
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

// InForce receives the object whose plan is now in force, after all state changes that the
// plan causes. It is nil if there is no object.
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
			r.announcer = report.NewAnnouncer(time.Now(), object.Status)
		}
	}
	r.wakeBy(time.Now())
}

// Observe receives the object that is stored on the API server. If there is none, the
// reporter writes nothing. If another client has changed the status, it writes it again.
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

// present reports whether the object whose plan is in force exists.
func (r *reporter) present() bool { return r.observed != nil && r.observed.UID == r.uid }

// repair schedules a write if the observed status is newer than the last report and has
// different states. It does nothing during a write, because the observed status may be the
// result of that write.
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

// wakeBy schedules the next decision at t or earlier.
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

// run writes reports, and emits their events, until ctx ends. Then it writes the last report.
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

// next returns the time of the next decision.
func (r *reporter) next() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wakeAt
}

// attempt is one write of a report.
type attempt struct {
	uid    types.UID
	plan   report.Plan
	status v1alpha1.NodePodProbeStatus
	// repeated are events for errors that have been reported before.
	repeated []report.Event
}

// decide returns the report to write now. It returns false if there is none.
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
	a := attempt{uid: r.uid, plan: r.plan, status: decision.Status}
	if r.writing = decision.Write; !r.writing {
		a.repeated = r.announce(now)
	}
	return a, r.writing
}

// report writes the report if it is due.
func (r *reporter) report(ctx context.Context, events eventEmitter) {
	now := time.Now()
	a, write := r.decide(now)
	if !write {
		events.Emit(a.repeated)
		return
	}
	r.notBefore = now.Add(r.interval)
	version, err := r.write(ctx, a)
	if err != nil {
		r.failed(ctx, now, err)
		return
	}
	if r.failing {
		r.log.Info("Resumed writing reports")
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

// failed schedules another attempt. The kind of error does not matter: the next attempt
// has the newest states, and the watch reports whether the object was deleted.
func (r *reporter) failed(ctx context.Context, now time.Time, err error) {
	if !r.failing && ctx.Err() == nil {
		r.log.Error(err, "Failed to write report, retrying")
		r.failing = true
	}
	r.notBefore = time.Now().Add(r.backoff.Step())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing = false
	r.repair()
	r.wakeBy(now)
}

// wrote records a written report and returns its events. It ignores a report of an object
// that has been recreated since.
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
	return append(events, r.announce(now)...)
}

// announce returns the events for reported errors that are due, and schedules the next.
func (r *reporter) announce(now time.Time) []report.Event {
	events, next := r.announcer.Due(now, r.plan, r.ledger.Status())
	if !next.IsZero() {
		r.wakeBy(next)
	}
	for _, e := range events {
		r.log.Info("Probe has no current result", "pod", e.Pod.Namespace+"/"+e.Pod.Name, "probe", e.Probe.Name, "message", e.Message)
	}
	return events
}

// errors returns how many probes have an error with the reason.
func (r *reporter) errors(reason v1alpha1.ProbeErrorReason) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for i := range r.ledger.Status().PodProbeStatuses {
		for _, e := range r.ledger.Status().PodProbeStatuses[i].ProbeErrors {
			if e.Reason == reason {
				n++
			}
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
