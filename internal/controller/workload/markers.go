// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
)

// Markers holds the store of the PodProbeMarkers. They are optional: there is no store until the API
// server serves them. It is safe for concurrent use. A nil Markers has no store.
type Markers struct {
	mu    sync.Mutex
	store Store
	// waiting are called when there is a store.
	waiting []func()
}

// NewMarkers returns Markers with the store, or without one if it is nil.
func NewMarkers(store Store) *Markers { return &Markers{store: store} }

// Serve sets the store, which is synced and indexed by namespace. All sets are enqueued, because
// markers may select their pods.
func (m *Markers) Serve(store Store) {
	m.mu.Lock()
	m.store = store
	calls := m.waiting
	m.waiting = nil
	m.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// get returns the store, nil if there is none.
func (m *Markers) get() Store {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store
}

// whenServed calls f when there is a store: at once if there is one.
func (m *Markers) whenServed(f func()) {
	m.mu.Lock()
	served := m.store != nil
	if !served {
		m.waiting = append(m.waiting, f)
	}
	m.mu.Unlock()
	if served {
		f()
	}
}

// markerSource returns the source of the events of markers. If the API server does not serve them yet,
// the source starts later, and the controller does not wait for it.
func (b *Base) markerSource(informers cache.Cache) source.Source {
	kind := source.Kind(informers, &v1alpha1.PodProbeMarker{}, controller.MarkerEvents(b.enqueueMarked))
	if b.Stores.Markers.get() != nil {
		return kind
	}
	return source.Func(func(ctx context.Context, q controller.Queue) error {
		b.Stores.Markers.whenServed(func() {
			// It fails only without its arguments.
			_ = kind.Start(ctx, q)
			b.enqueueAll(q)
		})
		return nil
	})
}
