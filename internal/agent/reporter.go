// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/worker"
)

const (
	// writeTimeout bounds one request, in case the connection is lost without an error.
	writeTimeout = 10 * time.Second

	// flushTimeout bounds the last writes before the agent stops.
	flushTimeout = 2 * time.Second
)

// sliceStore reads and writes the slices of the node's report: a nodeClient.
type sliceStore interface {
	// ListSlices returns the slices of the node that are stored now.
	ListSlices(ctx context.Context) ([]seamarkv1alpha1.ProbeReport, error)
	// WriteSlice replaces a slice, or creates it, and returns the size of the request.
	WriteSlice(ctx context.Context, slice *seamarkv1alpha1.ProbeReport, exists bool) (size int, err error)
	// DeleteSlice deletes a slice, which may not exist.
	DeleteSlice(ctx context.Context, name string) error
}

type eventEmitter interface {
	// Emit queues the events of a report that has been written.
	Emit(reported []report.Event)
}

// reporter stores the states of the probes and writes them in slices when report.Decide
// requests it: the first change immediately, then at most one batch of slices per interval.
// While the API server is unavailable it retries, always with the newest states. It writes
// nothing until it has read the slices of an earlier agent.
type reporter struct {
	node  string
	store sliceStore
	// status follows what has been reported.
	status *statusKeeper
	// running returns the UIDs of the pods with a running container.
	running func() map[string]bool
	// interval is the minimum time between the starts of two batches.
	interval time.Duration
	metrics  *agentmetrics.Metrics
	log      logr.Logger
	// wake has a token if wakeAt or listAt has changed.
	wake chan struct{}
	// listed is closed when the slices have been read.
	listed chan struct{}
	// jitter returns a random time that is shorter than the given one.
	jitter func(time.Duration) time.Duration

	mu     sync.Mutex
	plan   report.Plan
	states report.States
	// changed are the UIDs of the pods whose states have changed since the last decision, without
	// the times of runs. It is nil if the plan has changed.
	changed map[string]bool
	record  report.Record
	// announcer decides on the events for errors.
	announcer *report.Announcer
	// stored are the slices that were listed first, until the first object is known.
	stored []seamarkv1alpha1.ProbeReport
	// read reports whether the record was read from stored.
	read bool
	// uid is the UID of the object whose plan is in force, and owners are the owners of its
	// slices. The UID is empty before the first object.
	uid    types.UID
	owners []metav1.OwnerReference
	// observed is the newest object from the watch, or nil if there is none.
	observed *v1alpha1.NodePodProbe
	// relisted reports whether the object was listed again since the slices were.
	relisted bool
	// request is the newest request to restore the slices.
	request string
	// wakeAt is when to decide next, and listAt when to list the slices again. They are zero
	// if nothing is scheduled.
	wakeAt, listAt time.Time

	// Only the writing goroutine uses these.
	notBefore time.Time
	writes    retry
	lists     retry
	// rejected are the slices that the API server rejects, by number.
	rejected map[int]*retry
}

func newReporter(node string, store sliceStore, status *statusKeeper, running func() map[string]bool, interval time.Duration, metrics *agentmetrics.Metrics, log logr.Logger) *reporter {
	return &reporter{
		node: node, store: store, status: status, running: running, interval: interval, metrics: metrics, log: log,
		wake: make(chan struct{}, 1), listed: make(chan struct{}), states: report.States{}, rejected: map[int]*retry{},
		listAt: time.Now(), writes: newRetry(), lists: newRetry(), jitter: rand.N[time.Duration],
	}
}

// ProbeChanged receives the newest state of a probe.
func (r *reporter) ProbeChanged(change worker.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := change.Key
	before, known := r.states[key]
	r.states[key] = change.State
	if before.LastProbe = change.State.LastProbe; !known || before != change.State {
		r.touch(key)
	}
	now := time.Now()
	switch transition := change.Transition; {
	case transition != nil:
		r.metrics.Changed(string(transition.To))
		r.log.Info("Probe changed state", "pod", change.Pod.String(), "marker", change.Pod.Namespace+"/"+key.Marker,
			"probe", key.String(), "container", key.Name,
			"from", string(cmp.Or(transition.From, "none")), "to", string(transition.To), "message", transition.Message)
		r.wakeBy(now)
	case before.ContainerID != change.State.ContainerID && change.State.State != "":
		r.wakeBy(now)
	case before.Message != change.State.Message:
		r.wakeBy(later(now, r.record.MessageDue(r.plan, key, change.State, before.Message)))
	}
	if before.Problem != change.State.Problem {
		// One decision serves many runs, each of which may change the message of an error.
		r.wakeBy(now.Add(report.ErrorDelay))
	}
}

// ProbeGone receives a probe that no longer runs.
func (r *reporter) ProbeGone(key identity.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
	r.touch(key)
}

// ContainerRuns makes the reporter decide: a pod that left the plan while its containers did not run may stay in a slice
// as long as it is not known whether it was deleted.
func (r *reporter) ContainerRuns() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeBy(time.Now())
}

// touch records that a state has changed.
func (r *reporter) touch(key identity.Key) {
	if r.changed != nil {
		r.changed[string(key.PodUID)] = true
	}
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
	r.status.InForce(object)
	previous := r.plan
	r.plan, r.changed = planOf(object), nil
	r.keepPlanned(previous)
	if object == nil {
		return
	}
	r.uid = object.UID
	r.own(object)
	r.wakeBy(time.Now())
}

// keepPlanned removes the states of probes that are not planned: no worker had those that cannot
// run. It gives an empty state to the probes that the previous plan lacks and that have no state
// yet. A pod that is planned again may still have its entry of the last time, which is out of
// date. A plan that follows no other starts from the reported states.
func (r *reporter) keepPlanned(previous report.Plan) {
	// Without the container, because a probe that moves to another container is not new.
	type probe struct {
		uid types.UID
		id  identity.ID
	}
	known := map[probe]bool{}
	for _, key := range keysOf(previous) {
		known[probe{uid: key.PodUID, id: key.ID}] = true
	}
	before := r.states
	r.states = report.States{}
	for _, key := range keysOf(r.plan) {
		state, found := before[key]
		if found || previous.Generation > 0 && !known[probe{uid: key.PodUID, id: key.ID}] {
			r.states[key] = state
		}
	}
}

// keysOf returns the keys of the planned probes with a valid name.
func keysOf(plan report.Plan) []identity.Key {
	var keys []identity.Key
	for i := range plan.Pods {
		for j := range plan.Pods[i].Probes {
			if key, err := identity.KeyOf(&plan.Pods[i], &plan.Pods[i].Probes[j]); err == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// Observe receives the object that is stored on the API server. If there is none, the
// reporter writes nothing.
func (r *reporter) Observe(object *v1alpha1.NodePodProbe) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Observe(object)
	returned := r.observed == nil && object != nil
	r.observed = object
	if returned {
		r.wakeBy(time.Now())
	}
	r.restoreOnRequest()
}

// present reports whether the object whose plan is in force exists.
func (r *reporter) present() bool { return r.observed != nil && r.observed.UID == r.uid }

// wakeBy schedules the next decision at t or earlier.
func (r *reporter) wakeBy(t time.Time) { schedule(r.wake, &r.wakeAt, t) }

// errors returns how many probes have an error with the reason.
func (r *reporter) errors(reason v1alpha1.ProbeErrorReason) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Errors(r.plan, reason)
}

// slices returns the number of stored slices.
func (r *reporter) slices() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.Slices()
}
