// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
)

const (
	// eventBurst and eventQPS limit the events of one probe: a burst, then one every ten
	// seconds. The limit applies to each probe, so that probes of the same pod do not
	// affect each other.
	eventBurst = 25
	eventQPS   = 0.1

	// maxObjects is the number of objects of a series. Later events are in the last one. A pause ends
	// the series.
	maxObjects  = 10
	seriesPause = 10 * time.Minute

	// maxSeries is the maximum number of series, enough for all probes of the largest plan. The one
	// that was used last is kept longest.
	maxSeries = 8192
)

// correlator combines the events of a series into few objects, whatever their messages are, and limits
// their writes. It replaces client-go's EventCorrelator, which links the schemas of all APIs of
// Kubernetes into the agent: several MiB on every node. It is not safe for concurrent use.
type correlator struct {
	series *lru.Cache
}

// series are the events of a probe with the same reason, without a pause.
type series struct {
	limit *rate.Limiter
	// objects is the number of objects. name and message are those of the last one, first and newest
	// the times of its events, and count is their number.
	objects       int
	name, message string
	first, newest time.Time
	count         int32
}

func newCorrelator() *correlator { return &correlator{series: lru.New(maxSeries)} }

// seriesKey returns the key by which events are limited and combined: the pod, container,
// probe and reason.
func seriesKey(event *corev1.Event) string {
	probe, _, _ := strings.Cut(event.Message, ":")
	return strings.Join([]string{string(event.InvolvedObject.UID), event.InvolvedObject.FieldPath, probe, event.Reason}, " ")
}

// correlate turns the event into the one to write at now. It has a count above 1 if its object was
// written before: with the same message, or as the last object of the series. It returns false if the
// limit of the probe is exceeded.
func (c *correlator) correlate(now time.Time, event *corev1.Event) bool {
	key := seriesKey(event)
	s := &series{limit: rate.NewLimiter(eventQPS, eventBurst)}
	if found, ok := c.series.Get(key); ok {
		s = found.(*series)
	} else {
		c.series.Add(key, s)
	}
	if now.Sub(s.newest) > seriesPause {
		s.objects = 0
	}
	if s.objects == 0 || s.objects < maxObjects && s.message != event.Message {
		s.objects++
		s.name, s.message, s.first, s.count = event.Name, event.Message, event.FirstTimestamp.Time, 0
	}
	s.newest = now
	s.count++
	event.Name, event.FirstTimestamp.Time, event.Count = s.name, s.first, s.count
	return s.limit.AllowN(now, 1)
}
