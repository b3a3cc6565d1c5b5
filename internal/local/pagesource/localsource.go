// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localsource has the pods of `seamark local` for the web page. It follows the changes of
// the run, so timelines have every transition since the start.
package localsource

import (
	"context"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Source is a ui.Source. It is safe for concurrent use.
type Source struct {
	markers  []v1alpha1.PodProbeMarker
	compiled []*plan.Marker
	snapshot func() []local.PodView
	now      func() time.Time

	mu     sync.Mutex
	past   past
	waking map[*view]bool
}

// New returns the source of a run with the markers, all of which are valid. snapshot returns the
// current state of the pods.
func New(markers []v1alpha1.PodProbeMarker, snapshot func() []local.PodView, now func() time.Time) *Source {
	s := &Source{markers: markers, snapshot: snapshot, now: now, past: past{}, waking: map[*view]bool{}}
	for i := range markers {
		if compiled, err := plan.Compile(&markers[i]); err == nil {
			s.compiled = append(s.compiled, compiled)
		}
	}
	return s
}

// Observe takes a change of the run. It does not block.
func (s *Source) Observe(change local.Change) {
	if change.Kind == local.KindLog {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.add(change)
	for v := range s.waking {
		v.wake()
	}
}

// Open follows the pods of the scope.
func (s *Source) Open(_ context.Context, scope ui.Scope) (ui.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &view{source: s, namespace: scope.Namespace, woken: make(chan struct{}, 1)}
	v.wake()
	s.waking[v] = true
	return v, nil
}

// Timeline returns the timeline of one pod.
func (s *Source) Timeline(_ context.Context, query ui.TimelineQuery) (model.Timeline, error) {
	for _, view := range s.snapshot() {
		if view.Pod.Namespace != query.Pod.Namespace || view.Pod.Name != query.Pod.Name {
			continue
		}
		if pod, found := s.podOf(view); found {
			// A timeline ends with a whole second, which must not be before the last change.
			end := s.now().Add(time.Second - 1)
			return model.TimelineOf(&pod, s.eventsOf(view), nil, query.Since, end), nil
		}
	}
	return model.Timeline{}, ui.NotFound(query.Pod)
}

// eventsOf returns the events of a pod.
func (s *Source) eventsOf(of local.PodView) []history.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past.eventsOf(of.Pod)
}

func (s *Source) podOf(view local.PodView) (model.Pod, bool) {
	return model.PodOf(view.Pod, rowsOf(view, s.compiled))
}

// view is a ui.View.
type view struct {
	source    *Source
	namespace string
	woken     chan struct{}
}

func (v *view) wake() {
	select {
	case v.woken <- struct{}{}:
	default:
		// The view is going to look anyway.
	}
}

// Next waits for a change, and returns all pods and markers.
func (v *view) Next(ctx context.Context) (ui.Change, error) {
	select {
	case <-v.woken:
	case <-ctx.Done():
		return ui.Change{}, ctx.Err() //nolint:wrapcheck // the caller ended the context
	}
	change := ui.Change{All: true, Markers: []model.Marker{}}
	for i := range v.source.markers {
		if marker := &v.source.markers[i]; v.shows(marker.Namespace) {
			change.Markers = append(change.Markers, model.MarkerOf(marker, nil))
		}
	}
	for _, pod := range v.source.snapshot() {
		if !v.shows(pod.Pod.Namespace) {
			continue
		}
		if shown, found := v.source.podOf(pod); found {
			change.Pods = append(change.Pods, shown)
		}
	}
	return change, nil
}

func (v *view) shows(namespace string) bool { return v.namespace == "" || v.namespace == namespace }

// Close ends the view.
func (v *view) Close() {
	v.source.mu.Lock()
	defer v.source.mu.Unlock()
	delete(v.source.waking, v)
}
