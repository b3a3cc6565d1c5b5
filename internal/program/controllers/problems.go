// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
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

// MarkProblem describes why a pod does not have all marks of one marker.
type MarkProblem struct {
	// Limited is why the writes to the pod are limited, because marks of the marker change too
	// often. It is empty if they are not.
	Limited Limit
	// Refused has, by probe of the marker, why the API server refuses the marks of the probe.
	Refused map[string]string
}

func (p MarkProblem) equal(other MarkProblem) bool {
	return p.Limited == other.Limited && maps.Equal(p.Refused, other.Refused)
}

// MarkProblems holds the problems of the pods that do not have all of their marks, for the status
// of the markers. It is safe for concurrent use. Use NewMarkProblems to create one; a nil
// MarkProblems holds nothing.
type MarkProblems struct {
	markers *Inbox
	pods    perMarker[types.NamespacedName, MarkProblem]
}

// NewMarkProblems returns an empty MarkProblems. It enqueues the markers whose problems change.
func NewMarkProblems(markers *Inbox) *MarkProblems {
	return &MarkProblems{markers: markers, pods: newPerMarker[types.NamespacedName](MarkProblem.equal)}
}

// Set replaces the problems of the pod, by name of the marker. None forgets the pod.
func (m *MarkProblems) Set(pod types.NamespacedName, problems map[string]MarkProblem) {
	if m == nil {
		return
	}
	byMarker := make(map[types.NamespacedName]MarkProblem, len(problems))
	for marker, problem := range problems {
		byMarker[types.NamespacedName{Namespace: pod.Namespace, Name: marker}] = problem
	}
	m.markers.Enqueue(m.pods.set(pod, byMarker)...)
}

// Of returns the problems of the marker, by name of the pod.
func (m *MarkProblems) Of(marker types.NamespacedName) map[string]MarkProblem {
	if m == nil {
		return nil
	}
	byName := make(map[string]MarkProblem)
	for pod, problem := range m.pods.of(marker) {
		byName[pod.Name] = problem
	}
	return byName
}
