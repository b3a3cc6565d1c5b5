// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// eventPause is the time between two events about the pods of a set that is not settled: a rollout of a
// large set writes to pods several times per second, and each event costs the API server nearly as much
// as the creation of a pod.
const eventPause = 5 * time.Second

// record records the first failure of a step, and its events. Those about pods wait for report. Those of
// a step that did not succeed are only about the pods whose writes did: the next step has events about
// the others.
func (b *Base) record(set client.Object, events []workload.Event, step *apply.Step) {
	if len(step.Failures) > 0 {
		failure, reason := &step.Failures[0], "FailedScale"
		if failure.Update {
			reason = "FailedUpdate"
		}
		b.Recorder.Eventf(set, corev1.EventTypeWarning, reason, "%s: %v", failure.Object, failure.Err)
	}
	succeeded, written := step.Succeeded(), sets.New(step.Written...)
	for i := range events {
		event := events[i]
		if !succeeded {
			event = event.Of(written)
		}
		switch {
		case len(event.Pods) > 0:
			b.memory.happened(client.ObjectKeyFromObject(set), set.GetUID(), event)
		case succeeded:
			b.Recorder.Event(set, event.Type, event.Reason, event.Message())
		}
	}
}

// report records the events about pods if the set is settled or the pause has ended. Otherwise it
// returns the time until then, zero if there are no events.
func (b *Base) report(set client.Object, settled bool) time.Duration {
	events, wait := b.memory.report(client.ObjectKeyFromObject(set), set.GetUID(), settled, b.Now())
	for i := range events {
		b.Recorder.Event(set, events[i].Type, events[i].Reason, events[i].Message())
	}
	return wait
}

// happened remembers an event until it is reported. Events that differ only in their pods become one.
func (m *memory) happened(key types.NamespacedName, uid types.UID, event workload.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key, uid)
	r.events = workload.AddEvent(r.events, event)
}

// report returns the events and forgets them, or returns the time until they are reported.
func (m *memory) report(key types.NamespacedName, uid types.UID, settled bool, now time.Time) ([]workload.Event, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.of(key, uid)
	wait := eventPause - now.Sub(r.reported)
	switch {
	case len(r.events) == 0:
		return nil, 0
	case wait > 0 && !settled:
		return nil, wait
	}
	events := r.events
	r.events, r.reported = nil, now
	return events, 0
}
