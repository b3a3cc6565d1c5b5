// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// perMarker holds what sources, such as nodes or pods, know about markers. It is read by marker and
// replaced by source. It is safe for concurrent use. Values are compared with equal.
type perMarker[S comparable, V any] struct {
	equal func(a, b V) bool

	mu sync.Mutex
	by map[types.NamespacedName]map[S]V
	// markers are those of which a source knows something.
	markers map[S][]types.NamespacedName
}

func newPerMarker[S comparable, V any](equal func(a, b V) bool) perMarker[S, V] {
	return perMarker[S, V]{
		equal:   equal,
		by:      make(map[types.NamespacedName]map[S]V),
		markers: make(map[S][]types.NamespacedName),
	}
}

// set replaces what the source knows, and returns the markers whose values change. None forgets the
// source.
func (p *perMarker[S, V]) set(source S, values map[types.NamespacedName]V) []types.NamespacedName {
	p.mu.Lock()
	defer p.mu.Unlock()
	var changed []types.NamespacedName
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
		if old, found := p.by[marker][source]; found && p.equal(old, value) {
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

// of returns the values of the marker by source.
func (p *perMarker[S, V]) of(marker types.NamespacedName) map[S]V {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.by[marker])
}
