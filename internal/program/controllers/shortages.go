// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/marking/plan"
)

// Shortages holds which probes the plans of the nodes leave out for lack of room. The controller of
// plans sets them, and the controller of markers reports them. It is safe for concurrent use.
//
// It is kept in memory only: a new leader compiles the plans of all nodes.
type Shortages struct {
	// Inbox receives the markers whose shortages change.
	Inbox

	nodes perMarker[string, []plan.Shortage]
}

// NewShortages returns an empty Shortages.
func NewShortages() *Shortages {
	return &Shortages{nodes: newPerMarker[string](slices.Equal[[]plan.Shortage])}
}

// Set replaces the shortages of the node, and enqueues the markers whose shortages change.
func (s *Shortages) Set(node string, shortages []plan.Shortage) {
	byMarker := make(map[types.NamespacedName][]plan.Shortage)
	for _, short := range shortages {
		marker := types.NamespacedName{Namespace: short.Namespace, Name: short.ID.Marker}
		byMarker[marker] = append(byMarker[marker], short)
	}
	s.Enqueue(s.nodes.set(node, byMarker)...)
}

// Of returns the shortages of the marker on all nodes, in any order.
func (s *Shortages) Of(marker types.NamespacedName) []plan.Shortage {
	return slices.Concat(slices.Collect(maps.Values(s.nodes.of(marker)))...)
}

// Counts returns how many probes of pods are left out, by marker.
func (s *Shortages) Counts() map[types.NamespacedName]int {
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	counts := make(map[types.NamespacedName]int, len(s.nodes.by))
	for marker, nodes := range s.nodes.by {
		for _, shortages := range nodes {
			for _, short := range shortages {
				counts[marker] += short.Pods
			}
		}
	}
	return counts
}
