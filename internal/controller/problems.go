// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// MarkProblem describes why a pod does not have all marks of one marker.
type MarkProblem struct {
	// Limited is whether the writes to the pod are limited, because marks of the marker change
	// too often.
	Limited bool
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
