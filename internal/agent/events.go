// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

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
	queue      chan *corev1.Event
	// pending is the number of events that are queued or being written.
	pending atomic.Int64

	// mu is held while events are queued.
	mu sync.Mutex
	// stamp is the time in the name of the newest event. It is unique.
	stamp time.Time
}

func newEvents(sink eventSink, node string, metrics *agentmetrics.Metrics, log logr.Logger) *events {
	return &events{
		node: node, correlator: newCorrelator(),
		sink: sink, metrics: metrics, log: log, queue: make(chan *corev1.Event, maxQueued),
	}
}

// Emit queues the events of a report that has been written. It does not block.
func (e *events) Emit(reported []report.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	dropped := 0
	for _, r := range reported {
		if len(e.queue) == maxQueued {
			select {
			case <-e.queue:
				e.pending.Add(-1)
				dropped++
			default: // It has been written meanwhile.
			}
		}
		e.stamp = later(time.Now(), e.stamp.Add(time.Nanosecond))
		e.pending.Add(1)
		e.queue <- e.eventOf(r, e.stamp)
	}
	if dropped > 0 {
		e.log.Error(nil, "Dropped oldest events, the queue is full", "dropped", dropped)
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
		select {
		case <-ctx.Done():
			return
		case event := <-e.queue:
			e.write(ctx, event)
			e.pending.Add(-1)
		}
	}
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
		return e.pending.Load() == 0, nil
	})
}

const eventResource = "events"

// eventClient writes events to the API server. The typed client of client-go would register the
// types of all API groups in the agent.
type eventClient struct{ rest rest.Interface }

// newEventClient returns a client without a client-side rate limit.
func newEventClient(config *rest.Config) (*eventClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config = rest.CopyConfig(config)
	config.QPS, config.Timeout = -1, eventTimeout
	config.GroupVersion = new(corev1.SchemeGroupVersion)
	config.APIPath = "/api"
	config.ContentType = runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create event client: %w", err)
	}
	return &eventClient{rest: client}, nil
}

// Create implements eventSink.
func (c *eventClient) Create(ctx context.Context, event *corev1.Event) error {
	body, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event.Name, err)
	}
	err = c.rest.Post().Namespace(event.Namespace).Resource(eventResource).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("create event %s: %w", event.Name, err)
	}
	return nil
}

// Patch implements eventSink.
func (c *eventClient) Patch(ctx context.Context, event *corev1.Event, patch []byte) error {
	err := c.rest.Patch(types.MergePatchType).Namespace(event.Namespace).Resource(eventResource).Name(event.Name).
		Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("patch event %s: %w", event.Name, err)
	}
	return nil
}

// repeated returns the JSON merge patch of an event that occurs again.
func repeated(event *corev1.Event) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"count": event.Count, "lastTimestamp": event.LastTimestamp, "message": event.Message,
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch of event %s: %w", event.Name, err)
	}
	return patch, nil
}

// nameOf returns the name of an event of a pod: its name, truncated if needed, and a time that
// makes it unique.
func nameOf(pod string, at time.Time) string {
	suffix := "." + strconv.FormatInt(at.UnixNano(), 16)
	cut := pod[:min(len(pod), validation.DNS1123SubdomainMaxLength-len(suffix))]
	return strings.TrimRight(cut, "-.") + suffix
}
