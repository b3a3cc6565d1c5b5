// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web serves the web page of Seamark to one user, and the HTTP API that the page reads. It does
// not know where pods come from: a Source has them, which differs between `seamark ui` and `seamark
// local --ui`. The API only reads.
//
// All streams of the same scope share one group: it follows the source, compares each pod with its last
// state, and encodes a pod once for all streams.
package web

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

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
	// Open starts to follow the scope, until ctx ends. The caller ranges over the changes once, unless
	// there is an error.
	Open(ctx context.Context, scope Scope) (Changes, error)
	// Timeline returns the timeline of one pod.
	Timeline(ctx context.Context, query TimelineQuery) (model.Timeline, error)
}

// Changes waits until something may have changed since the change before, and yields it. The first
// change has all pods and markers as soon as they are known. An error is the last: ctx has ended, or
// the scope can no longer be followed.
type Changes = iter.Seq2[Change, error]

// Follow returns the change for which first is true, and another one after each value of the channel, until
// ctx ends.
func Follow(ctx context.Context, woken <-chan struct{}, change func(first bool) Change) Changes {
	return func(yield func(Change, error) bool) {
		for first := true; yield(change(first), nil); first = false {
			select {
			case <-woken:
			case <-ctx.Done():
				yield(Change{}, fmt.Errorf("wait for changes: %w", context.Cause(ctx)))
				return
			}
		}
	}
}

// Change is what may have changed. Pods that are equal to those before are not sent to users, so a
// source may list too many.
type Change struct {
	// All is whether Pods are all pods of the scope, so that those not listed are gone.
	All bool
	// Pods are new or may have changed.
	Pods []model.Pod
	// Removed are the keys of pods that are gone or have no probes any more, unless they are in Pods.
	Removed []string
	// Markers are all markers of the scope, without counts, or nil if they have not changed.
	Markers []model.Marker
	// Sets are the sets of the scope, or nil if they have not changed.
	Sets *model.Sets
}

// TimelineQuery selects a timeline.
type TimelineQuery struct {
	// Pod is the pod.
	Pod model.Key
	// Since is the length of the timeline, more than zero.
	Since time.Duration
}

// Access is what the user may read.
type Access struct {
	// User is the name of the user. It may be empty.
	User string
	// Full is whether the user may read plans and reports.
	Full bool
	// Problems lists the problems of objects with the permissions of the user. It is nil if there are no
	// such objects, as in a local run.
	Problems func(ctx context.Context) ([]model.ObjectProblem, error)
	// Set reads what is known about a set besides its rollout. It is nil if there are no sets.
	Set func(ctx context.Context, set model.SetID) (model.SetDetails, error)
	// Namespaces lists the namespaces that the user may see. It is nil if only those of the pods are known.
	Namespaces func(ctx context.Context) (model.Namespaces, error)
}

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

// NoSet returns the error for a set that does not exist.
func NoSet(set model.SetID) error {
	return &Refusal{http.StatusNotFound, fmt.Sprintf("%q does not exist, or is not of a kind that has a rollout", set.String())}
}

// Limits bound what the handler keeps for pages. A zero value means the default.
type Limits struct {
	// Streams is the maximum number of streams.
	Streams int
	// Interval is the minimum time between two changes of a stream.
	Interval time.Duration
	// Heartbeat is the maximum time without a byte on a stream.
	Heartbeat time.Duration
	// Linger is how long a scope without streams is followed, so that a page that is loaded again
	// needs no new start.
	Linger time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Streams: cmp.Or(l.Streams, 16), Interval: cmp.Or(l.Interval, 500*time.Millisecond),
		Heartbeat: cmp.Or(l.Heartbeat, 10*time.Second), Linger: cmp.Or(l.Linger, 10*time.Second),
	}
}

const (
	// maxRequests is the maximum number of requests that are answered at the same time, besides
	// streams.
	maxRequests = 32
	// writeTimeout is how long a write to a stream may take.
	writeTimeout = 30 * time.Second
)
