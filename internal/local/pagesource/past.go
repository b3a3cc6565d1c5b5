// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pagesource

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// maxEvents is the maximum number of events of a probe. Older ones are forgotten.
const maxEvents = 500

// past has the events of the probes of each pod. The number of probes is limited by the manifests.
type past map[model.Key]map[identity.ID][]history.Event

// add records a transition, or a run without a result. Equal errors in a row are one event.
func (p past) add(change local.Change) {
	probe := change.Probe
	if change.Kind != local.KindProbe || probe.Type != local.ProbeMarker {
		return
	}
	pod, id := model.Key{Namespace: change.Namespace, Name: change.Pod}, identity.ID{Marker: probe.Marker, Probe: probe.Name}
	if p[pod] == nil {
		p[pod] = map[identity.ID][]history.Event{}
	}
	events := p[pod][id]
	event := history.Event{Probe: history.Probe{ID: id}, State: probe.State, Message: probe.Message, Count: 1, First: change.Time, Last: change.Time}
	afterError := len(events) > 0 && events[len(events)-1].State == ""
	switch {
	case probe.Ran && probe.Error != "":
		event.State, event.Message = "", probe.Error
		if last := len(events) - 1; afterError && events[last].Message == event.Message {
			events[last].Count++
			events[last].Last = event.Last
			return
		}
	case probe.Transition, afterError && probe.State != "":
	default:
		return
	}
	if len(events) >= maxEvents {
		events = append(events[:0:0], events[len(events)-maxEvents+1:]...)
	}
	p[pod][id] = append(events, event)
}

func (p past) eventsOf(pod *corev1.Pod) []history.Event {
	var found []history.Event
	for _, events := range p[model.Key{Namespace: pod.Namespace, Name: pod.Name}] {
		for _, event := range events {
			event.Probe.UID = pod.UID
			found = append(found, event)
		}
	}
	return found
}
