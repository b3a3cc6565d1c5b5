// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
)

const (
	// stableDelay is how long a plan must be in force before the status reports it, and
	// maxStatusDelay is the maximum time until plans that keep changing are reported.
	stableDelay    = time.Second
	maxStatusDelay = 10 * time.Second

	// repairDelay is the delay before the next write after another client has changed the
	// status.
	repairDelay = time.Second

	// handOverDelay is how long the agent keeps the states that OpenKruise has written to the status after
	// it has stored all states in ProbeReports, even if it ends meanwhile. Managers receive ProbeReports and
	// the status in any order. Without the delay, a manager could use ProbeReports from before a return to
	// OpenKruise.
	handOverDelay = 2 * time.Second
)

// statusWriter writes the status of the node's object: a nodeClient.
type statusWriter interface {
	// WriteStatus replaces the status of the object with the UID and returns the new
	// resourceVersion.
	WriteStatus(ctx context.Context, uid types.UID, status v1alpha1.NodePodProbeStatus) (version string, err error)
}

// statusKeeper writes the status of the node's object: what is in force, but no states. Those of
// OpenKruise stay until all states are stored in slices.
type statusKeeper struct {
	writer statusWriter
	// interval is the minimum time between the starts of two writes.
	interval time.Duration
	metrics  *agentmetrics.Metrics
	log      logr.Logger
	// wake has a token if wakeAt has changed.
	wake chan struct{}

	mu sync.Mutex
	// observed is the newest object from the watch, or nil if there is none.
	observed *v1alpha1.NodePodProbe
	// uid is the UID of the object whose plan is in force. It is empty before the first.
	uid types.UID
	// inForce is the status of the plan in force. first and last are when it changed since
	// the last write. They are zero if it did not change.
	inForce     v1alpha1.NodePodProbeStatus
	first, last time.Time
	// completed is when all states were first stored, zero before. foundAt is when the status of another
	// writer was last found.
	completed, foundAt time.Time
	// written is the status that this agent wrote last, or found. stored is what the API
	// server stores of it at version, or nil if this is not known.
	written v1alpha1.NodePodProbeStatus
	stored  *v1alpha1.NodePodProbeStatus
	version string
	// unreported is set until the first write to the object, if nobody has reported on it.
	unreported bool
	// repairAt is when to write the status although nothing has changed, or zero.
	repairAt time.Time
	writing  bool
	// wakeAt is when to decide next. It is zero if no decision is scheduled.
	wakeAt time.Time

	// Only the writing goroutine uses these.
	notBefore time.Time
	writes    retry
}

func newStatusKeeper(writer statusWriter, interval time.Duration, metrics *agentmetrics.Metrics, log logr.Logger) *statusKeeper {
	return &statusKeeper{
		writer: writer, interval: interval, metrics: metrics, log: log, wake: make(chan struct{}, 1), writes: newRetry(),
	}
}

// InForce receives the object whose plan is now in force; nil if there is no object.
func (k *statusKeeper) InForce(object *v1alpha1.NodePodProbe) {
	if object == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now, plan := time.Now(), planOf(object)
	if k.uid != object.UID {
		k.uid, k.repairAt = object.UID, time.Time{}
		k.found(object)
		k.unreported = !object.Status.ProbeReports
	}
	k.inForce = v1alpha1.NodePodProbeStatus{
		ObservedGeneration: plan.Generation, Pods: int32(len(plan.Pods)), Probes: int32(plan.Probes()), ProbeReports: true,
	}
	if k.last = now; k.first.IsZero() {
		k.first = now
	}
	k.wakeBy(now)
	k.compare()
}

// Observe receives the object that is stored on the API server; nil if there is none. If
// another client has changed the status, it is written again.
func (k *statusKeeper) Observe(object *v1alpha1.NodePodProbe) {
	k.mu.Lock()
	defer k.mu.Unlock()
	returned := k.observed == nil && object != nil
	k.observed = object
	if returned {
		k.wakeBy(time.Now())
	}
	k.compare()
}

// Reported records that all states that are due are stored in slices.
func (k *statusKeeper) Reported() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.completed.IsZero() {
		k.completed = time.Now()
		k.wakeBy(k.completed)
	}
}

// Relisted compares the observed status with the last write, although it looks older: the database of
// the API server may have been restored from an older copy, with its versions.
func (k *statusKeeper) Relisted() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version = "1" // Every stored version is newer.
	k.compare()
}

// found records a status that this agent did not write.
func (k *statusKeeper) found(object *v1alpha1.NodePodProbe) {
	k.written, k.stored, k.version, k.foundAt = object.Status, &object.Status, object.ResourceVersion, time.Now()
}

// compare schedules a write if the observed status is newer than the last write and differs from
// it. It does nothing during a write, because the observed status may be the result of it.
func (k *statusKeeper) compare() {
	if k.writing || !k.present() {
		return
	}
	newer, err := resourceversion.CompareResourceVersion(k.observed.ResourceVersion, k.version)
	switch {
	case err != nil || newer < 0:
	case newer == 0, k.stored == nil && equality.Semantic.DeepEqual(k.observed.Status, k.written),
		k.stored != nil && equality.Semantic.DeepEqual(k.observed.Status, *k.stored):
		// The API server does not store all fields if the CRD is that of OpenKruise.
		k.stored, k.version = &k.observed.Status, k.observed.ResourceVersion
	default:
		k.found(k.observed)
		k.repairAt = time.Now().Add(repairDelay)
		k.wakeBy(k.repairAt)
	}
}

// present reports whether the object whose plan is in force exists.
func (k *statusKeeper) present() bool { return k.observed != nil && k.observed.UID == k.uid }

// wakeBy schedules the next decision at t or earlier.
func (k *statusKeeper) wakeBy(t time.Time) { schedule(k.wake, &k.wakeAt, t) }

// run writes the status until ctx ends.
func (k *statusKeeper) run(ctx context.Context) {
	loop(ctx, k.wake, k.next, func() { k.write(ctx, false) })
}

// flush writes what is not written yet.
func (k *statusKeeper) flush(ctx context.Context) { k.write(ctx, true) }

// next returns the time of the next decision. It is zero if none is scheduled.
func (k *statusKeeper) next() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wakeAt.IsZero() {
		return time.Time{}
	}
	return later(k.wakeAt, later(k.notBefore, k.writes.notBefore))
}

// decide returns the status to write now. It returns false if there is none.
func (k *statusKeeper) decide(now time.Time, flush bool) (uid types.UID, status v1alpha1.NodePodProbeStatus, write bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !flush && (k.wakeAt.IsZero() || k.wakeAt.After(now)) {
		return "", status, false
	}
	k.wakeAt = time.Time{}
	if k.completed.IsZero() || !k.present() {
		return "", status, false
	}
	if handOver := later(k.completed, k.foundAt).Add(handOverDelay); k.unreported && len(k.written.PodProbeStatuses) > 0 && now.Before(handOver) {
		k.wakeBy(handOver)
		return "", status, false
	}
	status = k.inForce
	due, changed := k.due(status)
	switch {
	case !changed:
		return "", status, false
	case due.After(now) && !flush:
		k.wakeBy(due)
		return "", status, false
	}
	k.writing = true
	return k.uid, status, true
}

// due returns when to write a status. It returns false if there is no need to.
func (k *statusKeeper) due(status v1alpha1.NodePodProbeStatus) (at time.Time, changed bool) {
	switch {
	case !k.repairAt.IsZero():
		return k.repairAt, true
	case equality.Semantic.DeepEqual(status, k.written):
		k.first, k.last = time.Time{}, time.Time{}
		return time.Time{}, false
	case k.unreported:
		return time.Time{}, true
	}
	at = k.last.Add(stableDelay)
	if latest := k.first.Add(maxStatusDelay); latest.Before(at) {
		at = latest
	}
	return at, true
}

// write writes the status if it is due.
func (k *statusKeeper) write(ctx context.Context, flush bool) {
	now := time.Now()
	uid, status, due := k.decide(now, flush)
	if !due {
		return
	}
	k.notBefore = now.Add(k.interval)
	request, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	version, err := k.writer.WriteStatus(request, uid, status)
	k.metrics.WroteStatus(err)
	if err != nil && k.writes.failed() && ctx.Err() == nil {
		k.log.Error(err, "Failed to write status, retrying")
	}
	if err == nil && k.writes.succeeded() {
		k.log.Info("Resumed writing status")
	}
	k.wrote(uid, status, version, err)
}

// wrote records the result of a write. It ignores a write to an object that has been recreated
// since.
func (k *statusKeeper) wrote(uid types.UID, status v1alpha1.NodePodProbeStatus, version string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writing = false
	if err != nil {
		k.wakeBy(time.Now())
	} else if k.uid == uid {
		k.written, k.stored, k.version = status, nil, version
		k.unreported, k.repairAt = false, time.Time{}
		k.first, k.last = time.Time{}, time.Time{}
		if k.inForce.ObservedGeneration != status.ObservedGeneration {
			k.first, k.last = time.Now(), time.Now()
		}
		k.wakeBy(time.Now())
	}
	k.compare()
}
