// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/program/keyed"
	"github.com/seamark-dev/seamark/internal/workload"
)

const (
	// eventPause is the time between two events of a set that differ only in their pods: a rollout of
	// a large set writes to pods several times per second, and each event costs the API server nearly
	// as much as the creation of a pod.
	eventPause = 5 * time.Second
	// eventInterval is how often pauses that have ended are found.
	eventInterval = 500 * time.Millisecond
)

// digest joins events about pods. The first event is recorded at once. Those that follow during the
// pause and differ only in their pods are recorded as one when the pause ends, which is lost if the
// process is killed before. Its size is that of what the sets did during the last pause.
type digest struct {
	pauses keyed.Store[eventKind, *pause]
}

// eventKind is what events that can become one have in common.
type eventKind struct {
	set               types.UID
	reason, one, many string
}

// pause is a pause after an event. The event is that of its end, without pods if there is none yet.
type pause struct {
	set   client.Object
	event workload.Event
	ends  time.Time
}

// add reports whether the event is recorded now.
func (d *digest) add(set client.Object, event *workload.Event, now time.Time) bool {
	if len(event.Pods) == 0 {
		return true
	}
	first := false
	kind := eventKind{set: set.GetUID(), reason: event.Reason, one: event.One, many: event.Many}
	d.pauses.Update(kind, func(current **pause) bool {
		switch p := *current; {
		case p == nil:
			*current, first = &pause{set: set, ends: now.Add(eventPause)}, true
		case len(p.event.Pods) == 0:
			p.event = *event
		default:
			p.event.Extend(event)
		}
		return true
	})
	return first
}

// due returns the pauses with an event that have ended, after which new ones begin. It forgets those
// without.
func (d *digest) due(now time.Time) []pause {
	var ended []pause
	d.pauses.Expire(func(_ eventKind, p *pause) bool {
		if now.Before(p.ends) {
			return false
		}
		if len(p.event.Pods) == 0 {
			return true
		}
		ended = append(ended, *p)
		*p = pause{set: p.set, ends: now.Add(eventPause)}
		return false
	})
	return ended
}

// reportDigest records the events of pauses when they end, and all that are left when ctx ends.
func (b *Base) reportDigest(ctx context.Context) error {
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.recordDue(b.Now())
		case <-ctx.Done():
			b.recordDue(b.Now().Add(eventPause))
			return nil
		}
	}
}

func (b *Base) recordDue(now time.Time) {
	for _, p := range b.digest.due(now) {
		b.Recorder.Event(p.set, p.event.Type, p.event.Reason, p.event.Message())
	}
}
