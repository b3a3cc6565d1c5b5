// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pagesource has the pods of `seamark local` for the web page. It follows the changes of
// the run, so timelines have every transition since the start.
package pagesource

import (
	"context"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// Source is a web.Source. It is safe for concurrent use.
type Source struct {
	markers  []v1alpha1.PodProbeMarker
	compiled []*plan.Marker
	snapshot func() []local.PodView
	now      func() time.Time

	mu     sync.Mutex
	past   past
	waking map[chan struct{}]bool
}

// New returns the source of a run with the markers, all of which are valid. snapshot returns the
// current state of the pods.
func New(markers []v1alpha1.PodProbeMarker, snapshot func() []local.PodView, now func() time.Time) *Source {
	s := &Source{markers: markers, snapshot: snapshot, now: now, past: past{}, waking: map[chan struct{}]bool{}}
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
	for woken := range s.waking {
		select {
		case woken <- struct{}{}:
		default:
			// The pods are going to be read anyway.
		}
	}
}

// Open follows the pods of the scope. Each change has all pods and markers.
func (s *Source) Open(ctx context.Context, scope web.Scope) (web.Changes, error) {
	woken := make(chan struct{}, 1)
	s.follow(woken, true)
	context.AfterFunc(ctx, func() { s.follow(woken, false) })
	return web.Follow(ctx, woken, func(bool) web.Change { return s.all(scope.Namespace) }), nil
}

// follow adds or removes a channel that receives a value after a change.
func (s *Source) follow(woken chan struct{}, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.waking[woken] = true
	} else {
		delete(s.waking, woken)
	}
}

// all returns the pods and markers of the namespace, or of all namespaces if it is empty.
func (s *Source) all(namespace string) web.Change {
	shows := func(of string) bool { return namespace == "" || namespace == of }
	change := web.Change{All: true, Markers: []model.Marker{}}
	for i := range s.markers {
		if marker := &s.markers[i]; shows(marker.Namespace) {
			change.Markers = append(change.Markers, model.MarkerOf(marker, nil))
		}
	}
	for _, view := range s.snapshot() {
		if !shows(view.Pod.Namespace) {
			continue
		}
		if pod, found := model.PodOf(view.Pod, rowsOf(view, s.compiled)); found {
			change.Pods = append(change.Pods, pod)
		}
	}
	return change
}

// Timeline returns the timeline of one pod.
func (s *Source) Timeline(_ context.Context, query web.TimelineQuery) (model.Timeline, error) {
	for _, view := range s.snapshot() {
		if view.Pod.Namespace != query.Pod.Namespace || view.Pod.Name != query.Pod.Name {
			continue
		}
		if rows := rowsOf(view, s.compiled); len(rows) > 0 {
			s.mu.Lock()
			defer s.mu.Unlock()
			// A timeline ends with a whole second, which must not be before the last change.
			end := s.now().Add(time.Second - 1)
			return model.TimelineOf(view.Pod, rows, s.past.eventsOf(view.Pod), nil, query.Since, end), nil
		}
	}
	return model.Timeline{}, web.NotFound(query.Pod)
}
