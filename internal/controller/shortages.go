// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/plan"
)

// Shortages holds which probes the plans of the nodes leave out for lack of room. The controller of
// plans sets them, and the controller of markers reports them. It is safe for concurrent use.
//
// It is kept in memory only: a new leader compiles the plans of all nodes.
type Shortages struct {
	// Inbox receives the markers whose shortages change.
	Inbox

	mu sync.Mutex
	// byMarker holds the shortages of a marker by node, and byNode the markers that have one.
	byMarker map[types.NamespacedName]map[string][]plan.Shortage
	byNode   map[string]sets.Set[types.NamespacedName]
}

// NewShortages returns an empty Shortages.
func NewShortages() *Shortages {
	return &Shortages{
		byMarker: make(map[types.NamespacedName]map[string][]plan.Shortage),
		byNode:   make(map[string]sets.Set[types.NamespacedName]),
	}
}

// Set replaces the shortages of the node, and enqueues the markers whose shortages change.
func (s *Shortages) Set(node string, shortages []plan.Shortage) {
	after := make(map[types.NamespacedName][]plan.Shortage)
	for _, short := range shortages {
		marker := markerOf(short)
		after[marker] = append(after[marker], short)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for marker := range s.byNode[node].Union(sets.KeySet(after)) {
		if slices.Equal(s.byMarker[marker][node], after[marker]) {
			continue
		}
		s.set(marker, node, after[marker])
		s.Enqueue(marker)
	}
	if len(after) > 0 {
		s.byNode[node] = sets.KeySet(after)
	} else {
		delete(s.byNode, node)
	}
}

// set requires the lock.
func (s *Shortages) set(marker types.NamespacedName, node string, shortages []plan.Shortage) {
	nodes := s.byMarker[marker]
	if nodes == nil {
		nodes = make(map[string][]plan.Shortage)
		s.byMarker[marker] = nodes
	}
	if len(shortages) > 0 {
		nodes[node] = shortages
	} else {
		delete(nodes, node)
	}
	if len(nodes) == 0 {
		delete(s.byMarker, marker)
	}
}

// Of returns the shortages of the marker on all nodes, in any order.
func (s *Shortages) Of(marker types.NamespacedName) []plan.Shortage {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []plan.Shortage
	for _, shortages := range s.byMarker[marker] {
		all = append(all, shortages...)
	}
	return all
}

// Counts returns how many probes of pods are left out, by marker.
func (s *Shortages) Counts() map[types.NamespacedName]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make(map[types.NamespacedName]int, len(s.byMarker))
	for marker, nodes := range s.byMarker {
		for _, shortages := range nodes {
			for _, short := range shortages {
				counts[marker] += short.Pods
			}
		}
	}
	return counts
}

func markerOf(short plan.Shortage) types.NamespacedName {
	return types.NamespacedName{Namespace: short.Namespace, Name: short.ID.Marker}
}
