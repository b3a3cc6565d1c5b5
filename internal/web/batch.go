// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"slices"

	"github.com/seamark-dev/seamark/internal/web/model"
)

// The names of the events of a stream.
const (
	eventPods    = "pods"
	eventMarkers = "markers"
	eventSets    = "sets"
	eventReady   = "ready"
	eventEnd     = "end"
)

// event returns an event as it is sent. JSON has no line breaks, so the data are one line.
func event(name string, data any) []byte {
	// The data are texts, numbers, and JSON that was encoded before.
	text, _ := json.Marshal(data)
	return slices.Concat([]byte("event: "+name+"\ndata: "), text, []byte("\n\n"))
}

// batch is what one stream sends next.
type batch struct {
	// whole is whether the pods and markers are all, and replace those that were sent before.
	whole bool
	pods  []json.RawMessage
	// removed are keys of pods.
	removed []string
	// markers is the event with the markers, or nil if they have not changed.
	markers []byte
	// sets is the event with the sets, or nil if they have not changed.
	sets []byte
}

// events yields the events one at a time, because all of them are large.
func (b batch) events(yield func([]byte) bool) {
	pods, removed, reset := b.pods, b.removed, b.whole
	for len(pods)+len(removed) > 0 || reset {
		podCount, removedCount := min(len(pods), model.MaxChunk), min(len(removed), model.MaxChunk)
		if !yield(event(eventPods, model.Pods[json.RawMessage]{
			Reset: reset, Pods: append([]json.RawMessage{}, pods[:podCount]...), Removed: removed[:removedCount],
		})) {
			return
		}
		pods, removed, reset = pods[podCount:], removed[removedCount:], false
	}
	if b.markers != nil && !yield(b.markers) {
		return
	}
	if b.sets != nil && !yield(b.sets) {
		return
	}
	if b.whole {
		yield(event(eventReady, struct{}{}))
	}
}
