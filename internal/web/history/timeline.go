// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
)

// Phase is what is known about a probe during a span of time.
type Phase string

// The phases.
const (
	// Succeeded, Failed and Unknown are the states of the probe.
	Succeeded = Phase(v1alpha1.ProbeSucceeded)
	Failed    = Phase(v1alpha1.ProbeFailed)
	Unknown   = Phase(v1alpha1.ProbeUnknown)
	// Error means that the probe could not be run. It kept its last state.
	Error Phase = "Error"
	// Changing means that the state changed several times, at times that are not known.
	Changing Phase = "Changing"
	// NotKnown means that nothing is known.
	NotKnown Phase = "NotKnown"
)

// Span is a span of time in which a probe has one phase.
type Span struct {
	// Start and End are its bounds.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Phase is what is known.
	Phase Phase `json:"phase"`
	// Message is the message of the probe at the start.
	Message string `json:"message,omitempty"`
}

// Line is the timeline of one probe.
type Line struct {
	// Marker, Probe and Container identify the probe.
	Marker    string `json:"marker"`
	Probe     string `json:"probe"`
	Container string `json:"container"`
	// Spans cover the whole time without gaps, in order.
	Spans []Span `json:"spans"`
	// Problem is why the state may be outdated now, or nil.
	Problem *probestatus.Problem `json:"problem,omitempty"`
}

// point is a moment from which a phase is known.
type point struct {
	at      time.Time
	phase   Phase
	message string
}

// NewLine returns the timeline of the row's probe between start and end. The events may be those of
// any probes.
func NewLine(row *probestatus.Row, events []Event, start, end time.Time) Line {
	line := Line{Marker: row.Marker, Probe: row.Probe, Container: row.Container, Problem: row.Problem}
	own := slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Probe != ProbeOf(row) })
	points := pointsOf(row, own)
	at := point{at: start, phase: NotKnown}
	for i, p := range points {
		if !p.at.Before(end) {
			points = points[:i]
			break
		}
	}
	if last := len(points) - 1; last >= 0 && points[last].phase == Error && row.Problem == nil {
		// The probe runs again, since when is not known.
		points = append(points, point{points[last].at.Add(time.Second), NotKnown, ""})
	}
	for _, p := range append(points, point{at: end}) {
		if p.at.After(start) {
			line.add(Span{Start: slices.MaxFunc([]time.Time{at.at, start}, time.Time.Compare), End: p.at, Phase: between(at, p, own), Message: at.message})
		}
		at = p
	}
	return line
}

// minLength is the minimum length of a timeline.
const minLength = time.Minute

// Start returns when the timeline of a pod starts that is at most since long: nothing happened
// before the pod was created. Clocks may differ, so events of the pod can be earlier. The events may be
// those of any pods.
func Start(pod *corev1.Pod, events []Event, since time.Duration, end time.Time) time.Time {
	start := pod.CreationTimestamp.UTC()
	for _, e := range events {
		if e.Probe.UID == pod.UID {
			start = slices.MinFunc([]time.Time{start, e.First.UTC()}, time.Time.Compare)
		}
	}
	if longest := end.Add(-since); start.Before(longest) {
		return longest
	}
	return slices.MinFunc([]time.Time{start, end.Add(-min(minLength, since))}, time.Time.Compare)
}

// add appends a span, or extends the last one if it has the same phase.
func (l *Line) add(s Span) {
	if last := len(l.Spans) - 1; last >= 0 && l.Spans[last].Phase == s.Phase {
		l.Spans[last].End = s.End
		return
	}
	if s.Phase == NotKnown || s.Phase == Changing {
		s.Message = ""
	}
	l.Spans = append(l.Spans, s)
}

// pointsOf returns the known moments in order. The row's last transition is one of them. It is
// usually also an event, whose time is a little later.
func pointsOf(row *probestatus.Row, events []Event) []point {
	var points []point
	for _, e := range events {
		phase := Phase(e.State)
		if e.State == "" {
			phase = Error
		}
		points = append(points, point{e.First, phase, e.Message})
		if e.Last.After(e.First) {
			points = append(points, point{e.Last, phase, e.Message})
		}
	}
	if row.State != "" && !row.LastTransitionTime.IsZero() {
		points = append(points, point{row.LastTransitionTime.Time, Phase(row.State), row.Message})
	}
	slices.SortStableFunc(points, func(a, b point) int { return a.at.Compare(b.at) })
	// A transition and its event are one moment. An API server stores whole seconds.
	return slices.CompactFunc(points, func(a, b point) bool {
		return a.phase == b.phase && b.at.Sub(a.at).Abs() <= sameMoment
	})
}

// sameMoment is how much later than a transition its event can be.
const sameMoment = 3 * time.Second

// between returns the phase between two consecutive moments. A moment without a phase is the end of
// the timeline.
func between(from, to point, events []Event) Phase {
	switch {
	case slices.ContainsFunc(events, func(e Event) bool {
		// The other occurrences are between the first and the last one.
		return e.Count > 2 && e.First.Before(to.at) && e.Last.After(from.at) && e.State != ""
	}):
		return Changing
	case from.phase == to.phase && from.phase != Error && from.phase != NotKnown:
		// The change to another state between them was not recorded.
		return NotKnown
	default:
		return from.phase
	}
}

// At returns the phase of a short span of time: Changing if there are several. Parts of which
// nothing is known do not count, unless nothing is known about the whole span.
func (l Line) At(start, end time.Time) Phase {
	found := Phase("")
	for _, s := range l.Spans {
		if !s.Start.Before(end) || !s.End.After(start) {
			continue
		}
		if s.Phase == NotKnown {
			continue
		}
		if found != "" && found != s.Phase {
			return Changing
		}
		found = s.Phase
	}
	if found == "" {
		return NotKnown
	}
	return found
}
