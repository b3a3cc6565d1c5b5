// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// world is a Source whose pods and markers a test changes. It also fails as the test asks.
type world struct {
	mu      sync.Mutex
	pods    map[string]model.Pod
	markers []model.Marker
	events  []history.Event
	views   map[*worldView]bool
	// refusal is what Open and Timeline return instead of an answer.
	refusal error
	// silent is whether views do not return anything.
	silent bool
}

func newWorld(markers []model.Marker, pods ...model.Pod) *world {
	w := &world{pods: map[string]model.Pod{}, markers: markers, views: map[*worldView]bool{}}
	w.set(pods...)
	return w
}

// set adds or replaces pods.
func (w *world) set(pods ...model.Pod) { w.change(pods, nil) }

// remove removes pods.
func (w *world) remove(keys ...string) { w.change(nil, keys) }

func (w *world) change(pods []model.Pod, removed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range pods {
		w.pods[pod.Key] = pod
	}
	for _, key := range removed {
		delete(w.pods, key)
	}
	for view := range w.views {
		for _, pod := range pods {
			view.changed[pod.Key] = true
		}
		for _, key := range removed {
			view.changed[key] = true
		}
		view.wake()
	}
}

// refuse makes all calls return an error, and ends the open views with it. nil ends this.
func (w *world) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusal = err
	for view := range w.views {
		view.wake()
	}
}

// hush makes views silent, or lets them speak again.
func (w *world) hush(silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = silent
	for view := range w.views {
		view.wake()
	}
}

// record adds events, which timelines show.
func (w *world) record(events ...history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, events...)
}

// Open implements ui.Source.
func (w *world) Open(_ context.Context, scope ui.Scope) (ui.View, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return nil, w.refusal
	}
	view := &worldView{world: w, namespace: scope.Namespace, first: true, changed: map[string]bool{}, woken: make(chan struct{}, 1)}
	w.views[view] = true
	view.wake()
	return view, nil
}

// Timeline implements ui.Source.
func (w *world) Timeline(_ context.Context, query ui.TimelineQuery) (model.Timeline, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return model.Timeline{}, w.refusal
	}
	pod, found := w.pods[query.Pod.String()]
	if !found {
		return model.Timeline{}, ui.NotFound(query.Pod)
	}
	return model.TimelineOf(&pod, w.events, query.NoEvents, query.Since, time.Now()), nil
}

// worldView is a View of a world.
type worldView struct {
	world     *world
	namespace string
	woken     chan struct{}
	// first and changed are guarded by the mutex of the world.
	first   bool
	changed map[string]bool
}

func (v *worldView) wake() {
	select {
	case v.woken <- struct{}{}:
	default:
	}
}

// Next implements ui.View.
func (v *worldView) Next(ctx context.Context) (ui.Change, error) {
	for {
		select {
		case <-v.woken:
		case <-ctx.Done():
			return ui.Change{}, ctx.Err()
		}
		if change, ready, err := v.take(); ready || err != nil {
			return change, err
		}
	}
}

// take returns what has changed, if anything has.
func (v *worldView) take() (ui.Change, bool, error) {
	w := v.world
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.refusal != nil:
		return ui.Change{}, false, w.refusal
	case w.silent, !v.first && len(v.changed) == 0:
		return ui.Change{}, false, nil
	}
	change := ui.Change{All: v.first, Markers: slices.DeleteFunc(slices.Clone(w.markers), func(m model.Marker) bool {
		return v.namespace != "" && m.Namespace != v.namespace
	})}
	keys := maps.Keys(v.changed)
	if v.first {
		keys = maps.Keys(w.pods)
	}
	for key := range keys {
		pod, exists := w.pods[key]
		switch {
		case !exists:
			change.Removed = append(change.Removed, key)
		case v.namespace == "" || pod.Namespace == v.namespace:
			change.Pods = append(change.Pods, pod)
		}
	}
	v.first, v.changed = false, map[string]bool{}
	return change, true, nil
}

// Close implements ui.View.
func (v *worldView) Close() {
	v.world.mu.Lock()
	defer v.world.mu.Unlock()
	delete(v.world.views, v)
}

// Why a source or a guard fails.
var (
	errBroken   = errors.New("the API server does not answer")
	errNoEvents = errors.New("jane may not list events in namespace shop, so changes before the last one are not known")
	refused     = ui.Refusal{Status: http.StatusForbidden, Message: "jane may not list pods in all namespaces"}
)
