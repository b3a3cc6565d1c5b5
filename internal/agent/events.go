// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
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
	// server does not answer.
	eventTimeout = 5 * time.Second
	eventTries   = 6

	// drainTimeout bounds the wait for events when the agent ends.
	drainTimeout = 500 * time.Millisecond

	// eventMessageBytes is the longest message of an event.
	eventMessageBytes = 1024
)

// eventSink writes events: record.EventSink without the updates, which nothing makes.
type eventSink interface {
	Create(event *corev1.Event) (*corev1.Event, error)
	Patch(event *corev1.Event, data []byte) (*corev1.Event, error)
}

// events tells the users of pods of changed states, in the background.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	correlator  *record.EventCorrelator
	sink        eventSink
	metrics     *agentmetrics.Metrics
	log         logr.Logger
	// pending counts events handed over and not yet done with.
	pending atomic.Int64
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
	return &typedcorev1.EventSinkImpl{Interface: client.Events("")}, nil
}

// newEvents starts the background work, which ends with ctx.
func newEvents(ctx context.Context, sink eventSink, node string, metrics *agentmetrics.Metrics, log logr.Logger) *events {
	e := &events{
		broadcaster: record.NewBroadcaster(record.WithContext(ctx)),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			BurstSize: eventBurst, QPS: eventQPS,
			SpamKeyFunc: spamKey,
			KeyFunc:     func(event *corev1.Event) (string, string) { return spamKey(event), event.Message },
		}),
		sink: sink, metrics: metrics, log: log,
	}
	e.recorder = e.broadcaster.NewRecorder(runtime.NewScheme(),
		corev1.EventSource{Component: v1alpha1.EventSourceComponent, Host: node})
	e.broadcaster.StartEventWatcher(func(event *corev1.Event) { e.write(ctx, event) })
	return e
}

// spamKey tells apart what is bounded and combined apart: the events of one probe that
// say the same of it.
func spamKey(event *corev1.Event) string {
	probe, _, _ := strings.Cut(event.Message, ":")
	return strings.Join([]string{string(event.InvolvedObject.UID), event.InvolvedObject.FieldPath, probe, event.Reason}, " ")
}

// Emit hands over the events of a report that has been written.
func (e *events) Emit(reported []report.Event) {
	for _, r := range reported {
		reason := v1alpha1.EventReasonProbeFailed
		if r.State == v1alpha1.ProbeSucceeded {
			reason = v1alpha1.EventReasonProbeSucceeded
		}
		e.pending.Add(1)
		e.recorder.Event(referenceTo(r), corev1.EventTypeNormal, reason, eventMessage(r))
	}
}

func referenceTo(r report.Event) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: types.UID(r.Pod.UID),
		FieldPath: fmt.Sprintf("spec.containers{%s}", r.Probe.ContainerName),
	}
}

// eventMessage names the probe before what it said.
func eventMessage(r report.Event) string {
	message := r.Probe.Name
	if r.Message != "" {
		message += ": " + r.Message
	}
	if len(message) > eventMessageBytes {
		message = strings.ToValidUTF8(message[:eventMessageBytes], "")
	}
	return message
}

// write brings one event to the API server, as a new one or as a count on one like it. It
// tries again while there is no answer, and takes a refusal for the last word.
func (e *events) write(ctx context.Context, event *corev1.Event) {
	defer e.pending.Add(-1)
	result, err := e.correlator.EventCorrelate(event)
	if err != nil {
		e.log.Error(err, "correlate event", "event", event.Message)
		return
	}
	if result.Skip {
		return
	}
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: eventTries}
	err = wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		written, err := e.request(result)
		if err == nil {
			e.correlator.UpdateState(written)
			return true, nil
		}
		var refused *apierrors.StatusError
		if errors.As(err, &refused) {
			return false, err
		}
		return false, nil
	})
	e.metrics.EventWritten(err)
	if err != nil && ctx.Err() == nil {
		e.log.Error(err, "write event", "namespace", event.Namespace, "pod", event.InvolvedObject.Name, "event", event.Message)
	}
}

func (e *events) request(result *record.EventCorrelateResult) (*corev1.Event, error) {
	if result.Event.Count > 1 {
		written, err := e.sink.Patch(result.Event, result.Patch)
		if !apierrors.IsNotFound(err) {
			return written, err
		}
	}
	event := result.Event.DeepCopy()
	event.ResourceVersion = ""
	return e.sink.Create(event)
}

// Close ends the background work. What is pending is lost.
func (e *events) Close() { e.broadcaster.Shutdown() }

// Drain waits until all events handed over are done with, or ctx ends.
func (e *events) Drain(ctx context.Context) {
	const interval = 10 * time.Millisecond
	// What is still pending when ctx ends is lost, as it would be in a crash.
	_ = wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		return e.pending.Load() <= 0, nil
	})
}
