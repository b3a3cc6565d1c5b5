// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/logging"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/report"
)

const (
	// eventBurst and eventQPS bound the events of one probe: a burst, then one in ten
	// seconds. The bound is on each probe, so that many probes of one pod don't take
	// each other's.
	eventBurst = 25
	eventQPS   = 0.1

	// eventTimeout bounds one request, and eventTries how often it is tried while the API
	// server can't answer: for some fifty seconds.
	eventTimeout = 5 * time.Second
	eventTries   = 9

	// drainTimeout bounds the wait for events when the agent ends.
	drainTimeout = 500 * time.Millisecond

	// maxQueued bounds the events that wait to be written.
	maxQueued = 10000
)

// eventSink writes events: the part of a typed client that is needed.
type eventSink interface {
	CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error)
	PatchWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event, data []byte) (*corev1.Event, error)
}

// events tells the users of pods of changed states, in the background. It has a queue of
// its own, since the one of client-go's recorder drops what comes in a burst.
type events struct {
	node       string
	correlator *record.EventCorrelator
	sink       eventSink
	metrics    *agentmetrics.Metrics
	log        logr.Logger
	// wake has a token while something may be queued.
	wake chan struct{}

	mu    sync.Mutex
	queue []*corev1.Event
	// busy is whether an event is being written.
	busy bool
	// stamp is the time that the newest event is named after; no two have the same.
	stamp time.Time
}

// newEventSink returns the sink that writes to the API server, without a rate limit of its
// own.
func newEventSink(config *rest.Config) (eventSink, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout = -1, eventTimeout
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	return client.Events(metav1.NamespaceAll), nil
}

func newEvents(sink eventSink, node string, metrics *agentmetrics.Metrics, log logr.Logger) *events {
	return &events{
		node: node,
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			BurstSize: eventBurst, QPS: eventQPS,
			SpamKeyFunc: spamKey,
			KeyFunc:     func(event *corev1.Event) (string, string) { return spamKey(event), event.Message },
		}),
		sink: sink, metrics: metrics, log: log, wake: make(chan struct{}, 1),
	}
}

// spamKey tells apart what is bounded and combined apart: the events of one probe that
// say the same of it.
func spamKey(event *corev1.Event) string {
	probe, _, _ := strings.Cut(event.Message, ":")
	return strings.Join([]string{string(event.InvolvedObject.UID), event.InvolvedObject.FieldPath, probe, event.Reason}, " ")
}

// Emit hands over the events of a report that has been written. It does not wait.
func (e *events) Emit(reported []report.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range reported {
		e.stamp = later(time.Now(), e.stamp.Add(time.Nanosecond))
		e.queue = append(e.queue, e.eventOf(r, e.stamp))
	}
	if dropped := len(e.queue) - maxQueued; dropped > 0 {
		e.log.Error(nil, "Dropping the oldest events, there are too many", "dropped", dropped)
		e.queue = e.queue[dropped:]
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// eventOf makes an event that is named after the time at.
func (e *events) eventOf(r report.Event, at time.Time) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      util.GenerateEventName(r.Pod.Name, at.UnixNano()),
			Namespace: r.Pod.Namespace,
		},
		InvolvedObject:      referenceTo(r),
		Type:                corev1.EventTypeNormal,
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

// run writes the queued events, one after the other, until ctx ends.
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

// next takes the first event off the queue, or returns nil.
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

// write brings one event to the API server, as a new one or as a count on one like it. It
// tries again while there is no answer, and takes a refusal for the last word.
func (e *events) write(ctx context.Context, event *corev1.Event) {
	result, err := e.correlator.EventCorrelate(event)
	if err != nil {
		e.log.Error(err, "Correlating an event", "pod", podOf(event), "event", event.Message)
		return
	}
	if result.Skip {
		return
	}
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: eventTries}
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		written, err := e.request(ctx, result)
		if apierrors.IsAlreadyExists(err) {
			// An earlier try has arrived, though its answer has not.
			return true, nil
		}
		if err == nil {
			e.correlator.UpdateState(written)
			return true, nil
		}
		if refused(err) {
			return false, err
		}
		return false, nil
	})
	e.metrics.EventWritten(err)
	switch {
	case err == nil:
		e.log.V(logging.Writes).Info("Wrote event", "pod", podOf(event), "reason", event.Reason)
	case ctx.Err() != nil:
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		e.log.V(logging.Writes).Info("Wrote no event, the namespace ends", "pod", podOf(event), "event", event.Message)
	default:
		e.log.Error(err, "Writing an event", "pod", podOf(event), "event", event.Message)
	}
}

func podOf(event *corev1.Event) string {
	return event.InvolvedObject.Namespace + "/" + event.InvolvedObject.Name
}

// refused tells whether an error is the API server's last word, and not a sign of its
// distress.
func refused(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.ErrStatus.Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err)
}

func (e *events) request(ctx context.Context, result *record.EventCorrelateResult) (*corev1.Event, error) {
	if result.Event.Count > 1 {
		written, err := e.sink.PatchWithEventNamespaceWithContext(ctx, result.Event, result.Patch)
		if !apierrors.IsNotFound(err) {
			return written, err
		}
	}
	event := result.Event.DeepCopy()
	event.ResourceVersion = ""
	return e.sink.CreateWithEventNamespaceWithContext(ctx, event)
}

// Drain waits until all events handed over are done with, or ctx ends. What is queued
// then is lost, as it would be in a crash.
func (e *events) Drain(ctx context.Context) {
	const interval = 10 * time.Millisecond
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return !e.busy && len(e.queue) == 0, nil
	})
}
