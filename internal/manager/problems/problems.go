// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems records why pods do not get marks, for the status of markers. All is kept in memory
// only: a new leader writes the marks of all pods and the plans of all nodes.
package problems

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
)

// MarkInterval is how often the marks of a pod may change for any length of time without a delay.
const MarkInterval = 5 * time.Second

// Limit is why the writes of marks to a pod are limited.
type Limit string

// The limits.
const (
	// LimitLoop means that the marks change again after each write.
	LimitLoop Limit = "loop"
	// LimitRate means that the marks change more often than every MarkInterval for a long time.
	LimitRate Limit = "rate"
)

// Cause returns what the marks do, as the end of a sentence.
func (l Limit) Cause() string {
	if l == LimitRate {
		return fmt.Sprintf("change more often than every %s", MarkInterval)
	}
	return "change again after each write"
}

// Mark describes why a pod does not have all marks of one marker.
type Mark struct {
	// Limited is why the writes to the pod are limited, because marks of the marker change too
	// often. It is empty if they are not.
	Limited Limit
	// Refused has, by probe of the marker, why the API server refuses the marks of the probe.
	Refused map[string]string
	// Values has, by probe of the marker and key, why the message of the probe has no valid value for
	// the key, such as "probe \"stats\": label role". The text comes from a container: it is shortened
	// and quoted.
	Values map[string]string
	// Waiting has, by probe of the marker, which pod has the exclusive marks that the pod waits for.
	Waiting map[string]string
}

// Marks holds the problems of the pods that do not have all of their marks.
type Marks = PerMarker[types.NamespacedName, Mark]

// PerMarker holds what sources, such as nodes or pods, know about markers. It is read by marker and
// replaced by source. It is safe for concurrent use. The zero value is ready for use.
type PerMarker[S comparable, V any] struct {
	// Inbox receives the markers whose values change.
	controllers.Inbox

	mu sync.Mutex
	by map[types.NamespacedName]map[S]V
	// markers are those of which a source knows something.
	markers map[S][]types.NamespacedName
}

// Set replaces what the source knows, and enqueues the markers whose values change. None forgets the
// source.
func (p *PerMarker[S, V]) Set(source S, values map[types.NamespacedName]V) {
	p.Enqueue(p.set(source, values)...)
}

func (p *PerMarker[S, V]) set(source S, values map[types.NamespacedName]V) (changed []types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil {
		p.by, p.markers = make(map[types.NamespacedName]map[S]V), make(map[S][]types.NamespacedName)
	}
	for _, marker := range p.markers[source] {
		if _, still := values[marker]; still {
			continue
		}
		if delete(p.by[marker], source); len(p.by[marker]) == 0 {
			delete(p.by, marker)
		}
		changed = append(changed, marker)
	}
	for marker, value := range values {
		if old, found := p.by[marker][source]; found && equality.Semantic.DeepEqual(old, value) {
			continue
		}
		if p.by[marker] == nil {
			p.by[marker] = make(map[S]V)
		}
		p.by[marker][source] = value
		changed = append(changed, marker)
	}
	if len(values) == 0 {
		delete(p.markers, source)
	} else {
		p.markers[source] = slices.Collect(maps.Keys(values))
	}
	return changed
}

// Of returns the values of the marker by source.
func (p *PerMarker[S, V]) Of(marker types.NamespacedName) map[S]V {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.by[marker])
}

// Refusals remembers why the last write of an object failed, so that a controller that waits for
// the writes of another one can report it. Pods are named by namespace and name, nodes by name only.
// It is safe for concurrent use. The zero value is ready for use.
type Refusals struct {
	reasons keyed.Store[types.NamespacedName, string]
}

// Note remembers why the last write of the object failed. A nil error forgets the object, because
// its last write succeeded or it no longer exists.
func (r *Refusals) Note(object types.NamespacedName, err error) {
	if err == nil {
		r.reasons.Forget(object)
	} else {
		r.reasons.Set(object, Reason(err))
	}
}

// Of returns why the last write of the object failed, or an empty string if it did not fail.
func (r *Refusals) Of(object types.NamespacedName) string {
	reason, _ := r.reasons.Get(object)
	return reason
}

// Reason returns the message of the API server, or the whole error if it did not answer.
func Reason(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}
