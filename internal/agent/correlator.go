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

	// maxMessages is the number of messages of a series that have an event of their own. The
	// next messages share one event, until the series pauses for seriesPause.
	maxMessages = 9
	seriesPause = 10 * time.Minute

	// maxSeries is the maximum number of series. The one that was used last is kept longest.
	maxSeries = 4096

	combinedPrefix = "(combined from similar events): "
)

// correlator combines equal events and limits the events of a probe. It has the rules of
// client-go's EventCorrelator, which links the schemas of all APIs of Kubernetes into the agent:
// several MiB on every node. It is not safe for concurrent use.
type correlator struct {
	// series has a *series by seriesKey.
	series *lru.Cache
}

// series are the events of a probe with the same reason.
type series struct {
	limit *rate.Limiter
	// newest is the time of the newest event.
	newest time.Time
	// written are the events by message. combined is the event that further messages share.
	written  map[string]*occurrence
	combined *occurrence
}

// occurrence is an event that has been written.
type occurrence struct {
	name  string
	first time.Time
	count int32
}

func newCorrelator() *correlator { return &correlator{series: lru.New(maxSeries)} }

// seriesKey returns the key by which events are limited and combined: the pod, container,
// probe and reason.
func seriesKey(event *corev1.Event) string {
	probe, _, _ := strings.Cut(event.Message, ":")
	return strings.Join([]string{string(event.InvolvedObject.UID), event.InvolvedObject.FieldPath, probe, event.Reason}, " ")
}

// correlate returns the event to write at now, which has a count above 1 if it repeats one that
// was written before. It returns false if the limit of the probe is exceeded. It may change the
// event.
func (c *correlator) correlate(now time.Time, event *corev1.Event) bool {
	key := seriesKey(event)
	var s *series
	if found, ok := c.series.Get(key); ok {
		s = found.(*series)
	} else {
		s = &series{limit: rate.NewLimiter(eventQPS, eventBurst), written: map[string]*occurrence{}}
		c.series.Add(key, s)
	}
	same := s.same(now, event)
	if same.count == 0 {
		same.name, same.first = event.Name, event.FirstTimestamp.Time
	}
	same.count++
	event.Name, event.FirstTimestamp.Time, event.Count = same.name, same.first, same.count
	return s.limit.AllowN(now, 1)
}

// same returns the occurrence that the event belongs to. Its count is 0 if there was none. It
// changes the message of an event that shares an occurrence with other messages.
func (s *series) same(now time.Time, event *corev1.Event) *occurrence {
	paused := now.Sub(s.newest) > seriesPause
	s.newest = now
	if same, found := s.written[event.Message]; found {
		return same
	}
	if len(s.written) >= maxMessages && paused {
		clear(s.written)
		s.combined = nil
	}
	if len(s.written) < maxMessages {
		same := &occurrence{}
		s.written[event.Message] = same
		return same
	}
	if s.combined == nil {
		s.combined = &occurrence{}
	}
	event.Message = combinedPrefix + event.Message
	return s.combined
}
