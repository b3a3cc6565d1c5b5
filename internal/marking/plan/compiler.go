// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Compiler caches compiled markers by generation and annotation. It is safe for concurrent use.
type Compiler struct {
	mu   sync.Mutex
	done map[types.NamespacedName]compilation
}

// compilation is the result for one version of a marker.
type compilation struct {
	uid        types.UID
	generation int64
	deleting   bool
	publishes  bool
	marker     *Marker
	err        error
}

// NewCompiler returns a Compiler with an empty cache.
func NewCompiler() *Compiler {
	return &Compiler{done: make(map[types.NamespacedName]compilation)}
}

// Compile is like the function Compile, but caches the result.
func (c *Compiler) Compile(m *v1alpha1.PodProbeMarker) (*Marker, error) {
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.done[key]
	if found && known.uid == m.UID && known.generation == m.Generation &&
		known.deleting == (m.DeletionTimestamp != nil) && known.publishes == PublishesBody(m) {
		return known.marker, known.err
	}
	marker, err := Compile(m)
	c.done[key] = compilation{
		uid: m.UID, generation: m.Generation, deleting: m.DeletionTimestamp != nil, publishes: PublishesBody(m),
		marker: marker, err: err,
	}
	return marker, err
}

// All compiles the markers and omits those that do not compile.
func (c *Compiler) All(markers []*v1alpha1.PodProbeMarker) []*Marker {
	compiled := make([]*Marker, 0, len(markers))
	for _, marker := range markers {
		if m, err := c.Compile(marker); err == nil {
			compiled = append(compiled, m)
		}
	}
	return compiled
}

// Forget removes a deleted marker from the cache.
func (c *Compiler) Forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.done, key)
}
