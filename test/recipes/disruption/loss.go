// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/seamark-dev/seamark/test/bench/page"
)

// Loss is what happens to the label of the primary after the node of the primary is lost. Times are in seconds.
type Loss struct {
	Program string `json:"program"`
	// Marker is which fields the marker has.
	Marker string `json:"marker"`
	// Moved is the time until another pod has the label, and Both how long two pods have it: at least, if Limited.
	Moved   float64 `json:"moved"`
	Both    float64 `json:"both"`
	Limited bool    `json:"limited"`
	Date    string  `json:"date"`
}

// Markers returns which fields of a marker are compared, in the order of the table.
func Markers() []string { return []string{Neither, Stale, Exclusive, StaleAndExclusive} }

// The fields of a marker that decide what happens to its marks when a node is lost.
const (
	Neither           = "neither field"
	Stale             = "`staleAfterSeconds: 30`"
	Exclusive         = "`exclusive`"
	StaleAndExclusive = "both fields, as in the recipe"
)

// Labels follows which pods have the label of the primary after the node of the primary is lost.
type Labels struct {
	lost    string
	start   time.Time
	holders map[string]bool
	// since is when a second pod got the label, or zero.
	since       time.Time
	moved, both time.Duration
}

// NewLabels returns what is known when the node of the primary is lost: only this pod has the label.
func NewLabels(primary string, lost time.Time) *Labels {
	return &Labels{lost: primary, start: lost, holders: map[string]bool{primary: true}}
}

// See takes note of whether a pod has the label.
func (l *Labels) See(pod string, has bool, at time.Time) {
	if has {
		l.holders[pod] = true
	} else {
		delete(l.holders, pod)
	}
	if has && pod != l.lost && l.moved == 0 {
		l.moved = at.Sub(l.start)
	}
	switch two := len(l.holders) > 1; {
	case two && l.since.IsZero():
		l.since = at
	case !two && !l.since.IsZero():
		l.both, l.since = l.both+at.Sub(l.since), time.Time{}
	}
}

// Moved reports whether another pod has the label, and no second one.
func (l *Labels) Moved() bool { return l.moved > 0 && len(l.holders) == 1 && !l.holders[l.lost] }

// Loss returns what happened until a time.
func (l *Labels) Loss(program, marker string, at time.Time) Loss {
	both := l.both
	if !l.since.IsZero() {
		both += at.Sub(l.since)
	}
	return Loss{
		Program: program, Marker: marker, Moved: l.moved.Seconds(), Both: both.Seconds(), Limited: !l.Moved(),
		Date: at.UTC().Format(time.DateOnly),
	}
}

// AddLosses replaces the losses of a program and a marker.
func (r *Results) AddLosses(program, marker string, losses []Loss) {
	r.Losses = append(slices.DeleteFunc(r.Losses, func(old Loss) bool { return old.Program == program && old.Marker == marker }), losses...)
}

// LossTable returns a table for a page: medians and, after a slash, the highest value.
func LossTable(losses []Loss) string {
	var programs []string
	for _, loss := range losses {
		if !slices.Contains(programs, loss.Program) {
			programs = append(programs, loss.Program)
		}
	}
	slices.Sort(programs)
	var rows [][]string
	for _, program := range programs {
		for _, marker := range Markers() {
			selected := slices.DeleteFunc(slices.Clone(losses), func(l Loss) bool { return l.Program != program || l.Marker != marker })
			if len(selected) == 0 {
				continue
			}
			both := spread(selected, func(l Loss) float64 { return l.Both })
			if slices.ContainsFunc(selected, func(l Loss) bool { return l.Limited }) {
				both = fmt.Sprintf("%s, and not over", both)
			}
			moved := spread(selected, func(l Loss) float64 { return l.Moved })
			rows = append(rows, []string{program, marker, strconv.Itoa(len(selected)), moved, both})
		}
	}
	return page.Markdown([]string{"program", "marker", "runs", "seconds until another pod has the label", "seconds with two labels"}, rows)
}
