// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// group follows one scope for all of its streams.
type group struct {
	hub   *hub
	scope Scope
	stop  context.CancelFunc
	// opened is closed when the source has opened the scope, or has failed with openErr.
	opened  chan struct{}
	openErr error
	// idle ends the group when it has no streams. The hub's mutex guards it.
	idle *time.Timer

	mu     sync.Mutex
	queues map[*queue]struct{}
	// err is why the group has ended, or nil.
	err error
	// complete is whether the whole state is known.
	complete bool
	pods     map[string]*entry
	markers  []model.Marker
	// sentMarkers is the last event with the markers.
	sentMarkers []byte

	// ctx ends when the group is stopped.
	ctx context.Context
}

// entry is a pod, with the JSON that was sent.
type entry struct {
	pod  model.Pod
	data json.RawMessage
}

func newGroup(h *hub, scope Scope) *group {
	g := &group{hub: h, scope: scope, opened: make(chan struct{}), queues: map[*queue]struct{}{}, pods: map[string]*entry{}}
	g.ctx, g.stop = context.WithCancel(h.ctx)
	return g
}

// run follows the scope until the group is stopped.
func (g *group) run() {
	defer g.stop()
	g.hub.end(g, g.follow())
}

func (g *group) follow() error {
	view, err := g.hub.source.Open(g.ctx, g.scope)
	g.openErr = err
	close(g.opened)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer view.Close()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		change, err := view.Next(g.ctx)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if err := g.apply(change); err != nil {
			return err
		}
		// Further changes wait in the view.
		pause.Reset(g.hub.limits.Interval)
		select {
		case <-pause.C:
		case <-g.ctx.Done():
			return g.ctx.Err() //nolint:wrapcheck // the hub replaces it
		}
	}
}

// apply records the change, and adds what differs to the queues of the streams.
func (g *group) apply(change Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed, removed, err := g.update(change)
	if err != nil {
		return err
	}
	markers, err := g.updateMarkers(change.Markers, len(changed)+len(removed) > 0)
	if err != nil {
		return err
	}
	if !g.complete {
		g.complete = true
		for q := range g.queues {
			q.start(g.state())
		}
		return nil
	}
	events, err := podEvents(changed, removed, false)
	if err != nil {
		return err
	}
	if markers != nil {
		events = append(events, markers)
	}
	if len(events) == 0 {
		return nil
	}
	for q := range g.queues {
		q.put(events)
	}
	return nil
}

// update records the pods. It returns the JSON of those that differ and the keys of those that are
// gone, ordered by key.
func (g *group) update(change Change) (changed []json.RawMessage, removed []string, err error) {
	gone := change.Removed
	if change.All {
		listed := make(map[string]bool, len(change.Pods))
		for i := range change.Pods {
			listed[change.Pods[i].Key] = true
		}
		for key := range g.pods {
			if !listed[key] {
				gone = append(gone, key)
			}
		}
	}
	for i := range change.Pods {
		pod := &change.Pods[i]
		data, err := json.Marshal(pod)
		if err != nil {
			return nil, nil, fmt.Errorf("encode pod %s: %w", pod.Key, err)
		}
		if before := g.pods[pod.Key]; before != nil && bytes.Equal(before.data, data) {
			continue
		}
		g.pods[pod.Key] = &entry{pod: *pod, data: data}
		changed = append(changed, data)
	}
	for _, key := range gone {
		if _, found := g.pods[key]; found {
			delete(g.pods, key)
			removed = append(removed, key)
		}
	}
	slices.Sort(removed)
	return changed, removed, nil
}

// updateMarkers records the markers, if they are not nil, and counts their probes. It returns the
// event to send, or nil if nothing differs. podsDiffer is whether pods have changed.
func (g *group) updateMarkers(markers []model.Marker, podsDiffer bool) ([]byte, error) {
	if markers != nil {
		g.markers = slices.Clone(markers)
	}
	if g.complete && markers == nil && !podsDiffer {
		return nil, nil
	}
	model.Count(g.markers, func(yield func(*model.Pod) bool) {
		for _, e := range g.pods {
			if !yield(&e.pod) {
				return
			}
		}
	})
	e, err := event(eventMarkers, model.Markers{Markers: append([]model.Marker{}, g.markers...)})
	if err != nil || bytes.Equal(e, g.sentMarkers) {
		return nil, err
	}
	g.sentMarkers = e
	return e, nil
}

// state returns the whole state for a new stream. The caller holds mu.
func (g *group) state() *state {
	entries := make([]*entry, 0, len(g.pods))
	for _, e := range g.pods {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	pods := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		pods = append(pods, e.data)
	}
	return &state{pods: pods, markers: g.sentMarkers}
}

// add returns the queue of a new stream. The caller holds the hub's mutex.
func (g *group) add() *queue {
	if g.idle != nil {
		g.idle.Stop()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := newQueue(g.hub.limits.Buffer)
	g.queues[q] = struct{}{}
	switch {
	case g.err != nil:
		q.end(g.err)
	case g.complete:
		q.start(g.state())
	}
	return q
}

// remove returns how many streams are left.
func (g *group) remove(q *queue) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.queues, q)
	return len(g.queues)
}

func (g *group) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queues)
}

// fail ends all streams.
func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
	for q := range g.queues {
		q.end(err)
	}
}
