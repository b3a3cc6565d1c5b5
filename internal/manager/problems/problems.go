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
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/program/text"
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

const (
	// maxTexts is how many reasons of a pod are kept, of the first markers and probes by name. Each further marker keeps one.
	maxTexts = 16
	// MaxReason is the maximum number of bytes of a reason.
	MaxReason = 400
)

// bounded returns the problems of a pod with as many reasons as are kept, so that a namespace with many probes that fail
// does not fill the memory: at most 64 markers select a pod. A marker with a problem keeps one.
func bounded(all map[types.NamespacedName]Mark) map[types.NamespacedName]Mark {
	kept, texts := make(map[types.NamespacedName]Mark, len(all)), 0
	byName := func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
	for _, marker := range slices.SortedFunc(maps.Keys(all), byName) {
		room := max(1, maxTexts-texts)
		first := func(reasons map[string]string) map[string]string {
			var some map[string]string
			for _, key := range slices.Sorted(maps.Keys(reasons))[:min(room, len(reasons))] {
				if some == nil {
					some = make(map[string]string)
				}
				some[key] = text.Truncate(reasons[key], MaxReason)
				room--
				texts++
			}
			return some
		}
		p := all[marker]
		p.Refused, p.Waiting, p.Values = first(p.Refused), first(p.Waiting), first(p.Values)
		kept[marker] = p
	}
	return kept
}

// Marks holds the problems of the pods that do not have all of their marks. It is read by marker and
// replaced by pod. It is safe for concurrent use. The zero value is ready for use.
type Marks struct {
	// Inbox receives the markers whose problems change.
	controllers.Inbox

	mu       sync.Mutex
	byMarker map[types.NamespacedName]map[types.NamespacedName]Mark
	// markers are those with a problem, by pod.
	markers map[types.NamespacedName][]types.NamespacedName
}

// Set replaces the problems of the pod by marker, and enqueues the markers whose problems change. None
// forgets the pod.
func (m *Marks) Set(pod types.NamespacedName, problems map[types.NamespacedName]Mark) {
	m.Enqueue(m.set(pod, bounded(problems))...)
}

func (m *Marks) set(pod types.NamespacedName, problems map[types.NamespacedName]Mark) (changed []types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byMarker == nil {
		m.byMarker, m.markers = make(map[types.NamespacedName]map[types.NamespacedName]Mark), make(map[types.NamespacedName][]types.NamespacedName)
	}
	for _, marker := range m.markers[pod] {
		if _, still := problems[marker]; still {
			continue
		}
		if delete(m.byMarker[marker], pod); len(m.byMarker[marker]) == 0 {
			delete(m.byMarker, marker)
		}
		changed = append(changed, marker)
	}
	for marker, problem := range problems {
		if old, found := m.byMarker[marker][pod]; found && equality.Semantic.DeepEqual(old, problem) {
			continue
		}
		if m.byMarker[marker] == nil {
			m.byMarker[marker] = make(map[types.NamespacedName]Mark)
		}
		m.byMarker[marker][pod] = problem
		changed = append(changed, marker)
	}
	if len(problems) == 0 {
		delete(m.markers, pod)
	} else {
		m.markers[pod] = slices.Collect(maps.Keys(problems))
	}
	return changed
}

// OfMarker returns the problems of the marker by pod.
func (m *Marks) OfMarker(marker types.NamespacedName) map[types.NamespacedName]Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.byMarker[marker])
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
		r.reasons.Set(object, text.Truncate(Reason(err), MaxReason))
	}
}

// Reason returns why the last write of the object failed, or an empty string if it did not fail.
func (r *Refusals) Reason(object types.NamespacedName) string {
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
