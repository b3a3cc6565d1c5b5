// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui serves the web page of Seamark and the HTTP API that the page reads. It does not know
// where pods come from: a Source has them, and a Guard decides what a user may read. Both differ
// between the manager, `seamark ui` and `seamark local --ui`. The API only reads.
//
// All streams of the same scope share one group: it follows the source, compares each pod with what
// was sent before, and encodes a change once for all streams.
package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// Scope is what a stream shows.
type Scope struct {
	// Namespace is the namespace of the pods, or empty for all namespaces.
	Namespace string
	// Full is whether states may come from plans and reports. Otherwise they come from the marks of
	// the pods.
	Full bool
}

// Source has the pods and markers that the page shows.
type Source interface {
	// Open starts to follow the scope. ctx applies to the call only, not to the view.
	Open(ctx context.Context, scope Scope) (View, error)
	// Timeline returns the timeline of one pod.
	Timeline(ctx context.Context, query TimelineQuery) (model.Timeline, error)
}

// View follows a scope. One goroutine calls its methods, and Close last.
type View interface {
	// Next waits until something may have changed since the call before, and returns it. The first
	// call returns all pods and markers as soon as they are known. Next returns an error when ctx
	// ends or the scope can no longer be followed.
	Next(ctx context.Context) (Change, error)
	// Close ends the view.
	Close()
}

// Change is what may have changed. Pods that are equal to those before are not sent to users, so a
// source may list too many.
type Change struct {
	// All is whether Pods are all pods of the scope, so that those not listed are gone.
	All bool
	// Pods are new or may have changed.
	Pods []model.Pod
	// Removed are the keys of pods that are gone, or have no probes any more.
	Removed []string
	// Markers are all markers of the scope, without counts, or nil if they have not changed.
	Markers []model.Marker
}

// TimelineQuery selects a timeline.
type TimelineQuery struct {
	// Scope is what the user may read. Its namespace is that of the pod.
	Scope Scope
	// Pod is the pod.
	Pod model.Key
	// Since is the length of the timeline, more than zero.
	Since time.Duration
	// Events lists the events of a pod with the permissions of the user. If it is nil, the source
	// has them.
	Events EventLister
	// NoEvents is why the user may not see events, or nil.
	NoEvents error
}

// EventLister lists the events of a pod.
type EventLister func(ctx context.Context, pod model.Key) ([]corev1.Event, error)

// Access is what the user of a request may read.
type Access struct {
	// User is the name of the user. It may be empty.
	User string
	// Namespaces are those that the user may read, or nil for all.
	Namespaces []string
	// Full is whether the user may read plans and reports.
	Full bool
	// Events lists the events of a pod with the permissions of the user. If it is nil, the source
	// has them.
	Events EventLister
	// NoEvents is why the user may not see events, or nil.
	NoEvents error
}

// Guard decides what the user of a request may read.
type Guard interface {
	// Admit returns what the user may read in the namespace, or in all if it is empty. It returns a
	// Refusal if the user may not read pods and markers there, or has sent too many requests.
	Admit(r *http.Request, namespace string) (Access, error)
	// Recheck is Admit for the request of a stream that runs. The number of streams is limited, so
	// Recheck is not: it must not fail because of other requests.
	Recheck(r *http.Request, namespace string) (Access, error)
}

// Anyone is a Guard that admits all requests.
type Anyone struct {
	// Access is what users may read.
	Access Access
}

// Admit returns the same for all requests.
func (a Anyone) Admit(*http.Request, string) (Access, error) { return a.Access, nil }

// Recheck returns what Admit does.
func (a Anyone) Recheck(*http.Request, string) (Access, error) { return a.Access, nil }

// Refusal is an error with an HTTP status. Its message is shown to users.
type Refusal struct {
	// Status is the HTTP status.
	Status int
	// Message says what is wrong, and what users can do.
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// NotFound returns the error for a pod that has no probes or does not exist.
func NotFound(pod model.Key) error {
	return &Refusal{http.StatusNotFound, fmt.Sprintf("pod %s has no probes: it does not exist, or no marker selects it", pod)}
}

// Limits bound what the handler keeps for users. A zero value means the default.
type Limits struct {
	// Streams is the maximum number of streams.
	Streams int
	// UserStreams is the maximum number of streams of one user.
	UserStreams int
	// Requests is the maximum number of requests that are answered at the same time, besides
	// streams.
	Requests int
	// Buffer is the maximum number of bytes that wait to be sent to one stream.
	Buffer int
	// Interval is the minimum time between two changes of a stream.
	Interval time.Duration
	// Heartbeat is the maximum time without a byte on a stream.
	Heartbeat time.Duration
	// Recheck is the time between two checks of what the user of a stream may read.
	Recheck time.Duration
	// Linger is how long a scope without streams is followed, so that a page that is loaded again
	// needs no new start.
	Linger time.Duration
	// Write is how long a write to a stream may take.
	Write time.Duration
}

// DefaultLimits returns the limits of a Handler.
func DefaultLimits() Limits {
	return Limits{
		Streams: 64, UserStreams: 16, Requests: 32, Buffer: 8 << 20,
		Interval: 500 * time.Millisecond, Heartbeat: 10 * time.Second, Recheck: 10 * time.Second,
		Linger: 10 * time.Second, Write: 30 * time.Second,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		Streams: cmp.Or(l.Streams, d.Streams), UserStreams: cmp.Or(l.UserStreams, d.UserStreams), Requests: cmp.Or(l.Requests, d.Requests),
		Buffer: cmp.Or(l.Buffer, d.Buffer), Interval: cmp.Or(l.Interval, d.Interval), Heartbeat: cmp.Or(l.Heartbeat, d.Heartbeat),
		Recheck: cmp.Or(l.Recheck, d.Recheck), Linger: cmp.Or(l.Linger, d.Linger), Write: cmp.Or(l.Write, d.Write),
	}
}
