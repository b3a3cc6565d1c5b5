// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"

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
	mu      sync.Mutex
	by      map[types.NamespacedName]map[string]MarkProblem
	pods    map[types.NamespacedName][]string
}

// NewMarkProblems returns an empty MarkProblems. It enqueues the markers whose problems change.
func NewMarkProblems(markers *Inbox) *MarkProblems {
	return &MarkProblems{
		markers: markers,
		by:      make(map[types.NamespacedName]map[string]MarkProblem),
		pods:    make(map[types.NamespacedName][]string),
	}
}

// Set replaces the problems of the pod, by name of the marker. None forgets the pod.
func (m *MarkProblems) Set(pod types.NamespacedName, problems map[string]MarkProblem) {
	if m == nil {
		return
	}
	m.markers.Enqueue(m.set(pod, problems)...)
}

// set returns the markers whose problems change.
func (m *MarkProblems) set(pod types.NamespacedName, problems map[string]MarkProblem) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var changed []types.NamespacedName
	for _, name := range m.pods[pod] {
		if _, still := problems[name]; still {
			continue
		}
		marker := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		delete(m.by[marker], pod.Name)
		if len(m.by[marker]) == 0 {
			delete(m.by, marker)
		}
		changed = append(changed, marker)
	}
	for name, problem := range problems {
		marker := types.NamespacedName{Namespace: pod.Namespace, Name: name}
		if old, found := m.by[marker][pod.Name]; found && old.equal(problem) {
			continue
		}
		if m.by[marker] == nil {
			m.by[marker] = make(map[string]MarkProblem)
		}
		m.by[marker][pod.Name] = problem
		changed = append(changed, marker)
	}
	if len(problems) == 0 {
		delete(m.pods, pod)
	} else {
		m.pods[pod] = slices.Sorted(maps.Keys(problems))
	}
	return changed
}

// Of returns the problems of the marker, by name of the pod.
func (m *MarkProblems) Of(marker types.NamespacedName) map[string]MarkProblem {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.by[marker])
}
