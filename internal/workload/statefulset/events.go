// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workload"
)

// podEvent is an event about pods. Those of a step that differ only in the pod become one: the write
// of an event costs the API server nearly as much as that of a pod, and recorders drop events that
// are too many.
type podEvent struct {
	// one is the format of the message for the name of one pod, many that for their number and names.
	reason, one, many string
	pods              []string
}

// event adds an event about the pod.
func (p *planner) event(reason, pod, one, many string) {
	i := slices.IndexFunc(p.events, func(e podEvent) bool { return e.reason == reason && e.many == many })
	if i < 0 {
		i = len(p.events)
		p.events = append(p.events, podEvent{reason: reason, one: one, many: many})
	}
	p.events[i].pods = append(p.events[i].pods, pod)
}

// report returns the events of the step, in the order of their first pods.
func (p *planner) report() []workload.Event {
	var events []workload.Event
	for _, e := range p.events {
		message := fmt.Sprintf(e.one, e.pods[0])
		if len(e.pods) > 1 {
			message = fmt.Sprintf(e.many, len(e.pods), workload.List(e.pods))
		}
		events = append(events, workload.Event{Type: corev1.EventTypeNormal, Reason: e.reason, Message: message})
	}
	return events
}
