// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/program/logging"
)

const (
	// eventTimeout bounds one request. eventAttempts is how often a request is sent while
	// the API server is unavailable, which takes about fifty seconds.
	eventTimeout  = 5 * time.Second
	eventAttempts = 9

	// drainTimeout bounds the wait for queued events when the agent stops.
	drainTimeout = 500 * time.Millisecond

	// maxQueued is the maximum number of queued events.
	maxQueued = 10000
)

// eventSink writes events.
type eventSink interface {
	// Create creates an event.
	Create(ctx context.Context, event *corev1.Event) error
	// Patch applies a JSON merge patch to an event.
	Patch(ctx context.Context, event *corev1.Event, patch []byte) error
}

// events writes the events of pods in the background. It has its own queue, because the
// recorder of client-go drops events of a burst.
type events struct {
	node       string
	correlator *correlator
	sink       eventSink
	metrics    *agentmetrics.Metrics
	log        logr.Logger
	// wake has a token while something may be queued.
	wake chan struct{}

	mu    sync.Mutex
	queue []*corev1.Event
	// busy reports whether an event is being written.
	busy bool
	// stamp is the time in the name of the newest event. It is unique.
	stamp time.Time
}

func newEvents(sink eventSink, node string, metrics *agentmetrics.Metrics, log logr.Logger) *events {
	return &events{
		node: node, correlator: newCorrelator(),
		sink: sink, metrics: metrics, log: log, wake: make(chan struct{}, 1),
	}
}

// Emit queues the events of a report that has been written. It does not block.
func (e *events) Emit(reported []report.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range reported {
		e.stamp = later(time.Now(), e.stamp.Add(time.Nanosecond))
		e.queue = append(e.queue, e.eventOf(r, e.stamp))
	}
	if dropped := len(e.queue) - maxQueued; dropped > 0 {
		e.log.Error(nil, "Dropped oldest events, the queue is full", "dropped", dropped)
		e.queue = e.queue[dropped:]
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// eventOf returns the event of a transition or an error, with the time at in its name.
func (e *events) eventOf(r report.Event, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      nameOf(r.Pod.Name, at),
			Namespace: r.Pod.Namespace,
		},
		InvolvedObject:      referenceTo(r),
		Type:                r.Type(),
		Reason:              r.Reason(),
		Message:             r.Text(),
		Count:               1,
		FirstTimestamp:      metav1.NewTime(at),
		LastTimestamp:       metav1.NewTime(at),
		Source:              corev1.EventSource{Component: v1alpha1.EventSourceComponent, Host: e.node},
		ReportingController: v1alpha1.EventSourceComponent,
		ReportingInstance:   e.node,
	}
}

func referenceTo(r report.Event) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: types.UID(r.Pod.UID),
		FieldPath: fmt.Sprintf("spec.containers{%s}", r.Probe.ContainerName),
	}
}

// run writes the queued events one by one until ctx ends.
func (e *events) run(ctx context.Context) {
	for {
		for event := e.next(); event != nil && ctx.Err() == nil; event = e.next() {
			e.write(ctx, event)
		}
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
	}
}

// next removes and returns the first event of the queue, or nil.
func (e *events) next() *corev1.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy = len(e.queue) > 0
	if !e.busy {
		return nil
	}
	event := e.queue[0]
	e.queue = e.queue[1:]
	return event
}

// write creates an event, or increases the count of an equal one. It retries while the API
// server is unavailable, but not after a rejection.
func (e *events) write(ctx context.Context, event *corev1.Event) {
	if !e.correlator.correlate(time.Now(), event) {
		return
	}
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: eventAttempts}
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		err := e.request(ctx, event)
		if apierrors.IsAlreadyExists(err) {
			// An earlier attempt succeeded, but its response was lost.
			return true, nil
		}
		if isRejection(err) {
			return false, err
		}
		return err == nil, nil
	})
	e.metrics.EventWritten(err)
	switch {
	case err == nil:
		e.log.V(logging.Writes).Info("Wrote event", "pod", podOf(event), "reason", event.Reason)
	case ctx.Err() != nil:
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.log.V(logging.Writes).Info("Skipped event, the namespace is terminating", "pod", podOf(event), "event", event.Message)
	default:
		e.log.Error(err, "Failed to write event", "pod", podOf(event), "event", event.Message)
	}
}

func podOf(event *corev1.Event) string {
	return event.InvolvedObject.Namespace + "/" + event.InvolvedObject.Name
}

// isRejection reports whether the API server rejected a request permanently.
func isRejection(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.ErrStatus.Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err)
}

// request creates an event, or updates an earlier one that it repeats.
func (e *events) request(ctx context.Context, event *corev1.Event) error {
	if event.Count > 1 {
		patch, err := repeated(event)
		if err != nil {
			return err
		}
		if err := e.sink.Patch(ctx, event, patch); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return e.sink.Create(ctx, event)
}

// Drain waits until the queue is empty or ctx ends. Events that are still queued then are
// lost.
func (e *events) Drain(ctx context.Context) {
	const interval = 10 * time.Millisecond
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.busy && len(e.queue) == 0, nil
	})
}
