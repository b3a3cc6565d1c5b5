// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// group follows one scope for all of its streams.
type group struct {
	scope Scope
	// ctx ends when the group is stopped.
	ctx  context.Context
	stop context.CancelFunc
	// streams is the number of streams, and idle ends the group when it has none. The hub's mutex
	// guards both.
	streams int
	idle    *time.Timer
	// opened is closed when the source has opened the scope, or has failed with openErr.
	opened  chan struct{}
	openErr error

	mu sync.Mutex
	// changed is closed after the next change of what follows.
	changed chan struct{}
	// err is why the group has ended, or nil.
	err error
	// complete is whether the whole state is known.
	complete bool
	pods     map[string]*entry
	markers  []model.Marker
	// sentMarkers is the last event with the markers.
	sentMarkers []byte
	// sentSets is the last event with the sets. It is nil if the source has none.
	sentSets []byte
	// log has the keys of the last pods that have changed, and theMarkers and theSets. first is the
	// number of changes before them.
	log   []string
	first int
}

const (
	// theMarkers and theSets are in the log in place of the key of a pod, which has a slash, if they have changed.
	theMarkers, theSets = "markers", "sets"
	// minLog is the number of changes that are kept at least. More are kept if there are more pods:
	// a stream that has missed as many gets the whole state, which is smaller.
	minLog = 1000
)

// entry is a pod with its JSON.
type entry struct {
	pod  model.Pod
	data json.RawMessage
}

func newGroup(ctx context.Context, scope Scope) *group {
	g := &group{scope: scope, opened: make(chan struct{}), changed: make(chan struct{}), pods: map[string]*entry{}}
	g.ctx, g.stop = context.WithCancel(ctx)
	return g
}

// follow records the changes of the source until the group is stopped.
func (g *group) follow(source Source, interval time.Duration) error {
	changes, err := source.Open(g.ctx, g.scope)
	g.openErr = err
	close(g.opened)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for change, err := range changes {
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if err := g.apply(change); err != nil {
			return err
		}
		// Further changes wait in the source.
		pause.Reset(interval)
		select {
		case <-pause.C:
		case <-g.ctx.Done():
			return g.ctx.Err() //nolint:wrapcheck // the hub replaces it
		}
	}
	return nil
}

// apply records the change, and wakes the streams if anything differs.
func (g *group) apply(change Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if keep := max(minLog, len(g.pods)); len(g.log) > 2*keep {
		g.first += len(g.log) - keep
		g.log = slices.Clone(g.log[len(g.log)-keep:])
	}
	before := len(g.log)
	if err := g.update(change); err != nil {
		return err
	}
	g.updateMarkers(change.Markers, len(g.log) > before)
	if change.Sets != nil {
		if e := event(eventSets, change.Sets); !bytes.Equal(e, g.sentSets) {
			g.sentSets = e
			g.log = append(g.log, theSets)
		}
	}
	if g.complete && len(g.log) == before {
		return nil
	}
	g.complete = true
	g.wake()
	return nil
}

// wake makes the streams read what has changed. The caller holds mu.
func (g *group) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// update records the pods, and logs those that differ.
func (g *group) update(change Change) error {
	gone := sets.New(change.Removed...)
	if change.All {
		gone = sets.KeySet(g.pods)
	}
	for i := range change.Pods {
		pod := &change.Pods[i]
		gone.Delete(pod.Key)
		data, err := json.Marshal(pod)
		if err != nil {
			return fmt.Errorf("encode pod %s: %w", pod.Key, err)
		}
		if before := g.pods[pod.Key]; before == nil || !bytes.Equal(before.data, data) {
			g.pods[pod.Key] = &entry{pod: *pod, data: data}
			g.log = append(g.log, pod.Key)
		}
	}
	for key := range gone {
		if _, found := g.pods[key]; found {
			delete(g.pods, key)
			g.log = append(g.log, key)
		}
	}
	return nil
}

// updateMarkers records the markers, if they are not nil, and counts their probes. podsDiffer is
// whether pods have changed.
func (g *group) updateMarkers(markers []model.Marker, podsDiffer bool) {
	if markers != nil {
		g.markers = slices.Clone(markers)
	}
	if g.complete && markers == nil && !podsDiffer {
		return
	}
	model.Count(g.markers, func(yield func(*model.Pod) bool) {
		for _, e := range g.pods {
			if !yield(&e.pod) {
				return
			}
		}
	})
	if e := event(eventMarkers, model.Markers{Markers: append([]model.Marker{}, g.markers...)}); !bytes.Equal(e, g.sentMarkers) {
		g.sentMarkers = e
		g.log = append(g.log, theMarkers)
	}
}

// read returns what has changed after the first changes, which a stream has sent, the number of all
// changes, and what is closed after the next one. A stream that has sent nothing has sent -1 changes.
// The error is why the stream ends after this, or nil.
func (g *group) read(sent int) (b batch, all int, changed <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.complete {
		return batch{}, -1, g.changed, g.err
	}
	var keys []string
	if b.whole = sent < g.first; b.whole {
		keys = append(slices.Collect(maps.Keys(g.pods)), theMarkers, theSets)
	} else {
		keys = slices.Clone(g.log[sent-g.first:])
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		switch e := g.pods[key]; {
		case e != nil:
			b.pods = append(b.pods, e.data)
		case key == theMarkers:
			b.markers = g.sentMarkers
		case key == theSets:
			b.sets = g.sentSets
		default:
			b.removed = append(b.removed, key)
		}
	}
	return b, g.first + len(g.log), g.changed, g.err
}

// fail ends all streams.
func (g *group) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
	g.wake()
}
