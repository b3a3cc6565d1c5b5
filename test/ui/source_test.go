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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/marking/probestatus"
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
	// woken receives a value after each change, for each scope that is followed.
	woken map[chan struct{}]bool
	// refusal is what Open and Timeline return instead of an answer.
	refusal error
	// silent is whether nothing is known about the pods.
	silent bool
	// noEvents is why timelines have no events, or nil.
	noEvents error
}

func newWorld(markers []model.Marker, pods ...model.Pod) *world {
	w := &world{pods: map[string]model.Pod{}, markers: markers, woken: map[chan struct{}]bool{}}
	w.set(pods...)
	return w
}

// change changes the world, and wakes those who follow it.
func (w *world) change(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	for woken := range w.woken {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// set adds or replaces pods.
func (w *world) set(pods ...model.Pod) {
	w.change(func() {
		for _, pod := range pods {
			w.pods[pod.Key] = pod
		}
	})
}

func (w *world) remove(keys ...string) {
	w.change(func() {
		for _, key := range keys {
			delete(w.pods, key)
		}
	})
}

// refuse makes all calls return an error, and ends what is open with it. nil ends this.
func (w *world) refuse(err error) { w.change(func() { w.refusal = err }) }

// hush makes the world silent, or lets it speak again.
func (w *world) hush(silent bool) { w.change(func() { w.silent = silent }) }

// withhold makes timelines have no events for a reason.
func (w *world) withhold(reason error) { w.change(func() { w.noEvents = reason }) }

// record adds events, which timelines show.
func (w *world) record(events ...history.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, events...)
}

// Open implements web.Source.
func (w *world) Open(ctx context.Context, scope web.Scope) (web.Changes, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return nil, w.refusal
	}
	woken := make(chan struct{}, 1)
	w.woken[woken] = true
	woken <- struct{}{}
	return func(yield func(web.Change, error) bool) {
		defer w.change(func() { delete(w.woken, woken) })
		for {
			select {
			case <-woken:
			case <-ctx.Done():
				yield(web.Change{}, ctx.Err())
				return
			}
			if change, known, err := w.all(scope.Namespace); (known || err != nil) && !yield(change, err) {
				return
			}
		}
	}, nil
}

// all returns everything in the namespace, if it is known.
func (w *world) all(namespace string) (change web.Change, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hidden := func(of string) bool { return namespace != "" && namespace != of }
	change = web.Change{
		All: true, Pods: slices.DeleteFunc(slices.Collect(maps.Values(w.pods)), func(p model.Pod) bool { return hidden(p.Namespace) }),
		Markers: slices.DeleteFunc(slices.Clone(w.markers), func(m model.Marker) bool { return hidden(m.Namespace) }),
	}
	return change, !w.silent, w.refusal
}

// Timeline implements web.Source.
func (w *world) Timeline(_ context.Context, query web.TimelineQuery) (model.Timeline, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal != nil {
		return model.Timeline{}, w.refusal
	}
	pod, found := w.pods[query.Pod.String()]
	if !found {
		return model.Timeline{}, web.NotFound(query.Pod)
	}
	var rows []probestatus.Row
	for _, p := range pod.Probes {
		rows = append(rows, probestatus.Row{
			UID: pod.UID, Marker: p.Marker, Probe: p.Probe, Container: p.Container,
			State: p.State, LastTransitionTime: metav1.NewTime(p.Since), Message: p.Message, Problem: p.Problem,
		})
	}
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID, CreationTimestamp: metav1.NewTime(pod.Created)}}
	return model.TimelineOf(object, rows, w.events, w.noEvents, query.Since, time.Now()), nil
}

// Why a source fails.
var (
	errBroken   = errors.New("the API server does not answer")
	errNoEvents = errors.New("jane may not list events in namespace shop, so changes before the last one are not known")
	refused     = web.Refusal{Status: http.StatusForbidden, Message: "jane may not list pods in all namespaces"}
)
