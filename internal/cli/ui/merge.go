// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"iter"
	"sync"

	webui "github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// merge returns the changes of several scopes as those of one. No object is in two scopes. stop ends the scopes: merge calls it
// when nobody ranges over the changes any more.
func merge(scopes []webui.Changes, stop func()) webui.Changes {
	return func(yield func(webui.Change, error) bool) {
		m := merged{markers: make([][]model.Marker, len(scopes)), sets: make([]*model.Sets, len(scopes))}
		nexts := make([]func() (webui.Change, error, bool), len(scopes))
		first := webui.Change{All: true}
		for i, scope := range scopes {
			next, end := iter.Pull2(scope)
			defer end()
			nexts[i] = next
			change, err, _ := next()
			if err != nil {
				stop()
				yield(webui.Change{}, err)
				return
			}
			first.Pods = append(first.Pods, change.Pods...)
			m.add(i, &change)
		}
		first.Markers, first.Sets = m.allMarkers(), m.allSets()
		if !yield(first, nil) {
			stop()
			return
		}
		m.follow(nexts, stop, yield)
	}
}

// merged has what was last known of each scope.
type merged struct {
	markers [][]model.Marker
	sets    []*model.Sets
}

// follow yields the changes of all scopes until one of them ends.
func (m *merged) follow(nexts []func() (webui.Change, error, bool), stop func(), yield func(webui.Change, error) bool) {
	type part struct {
		from   int
		change webui.Change
		err    error
	}
	received, done := make(chan part), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	defer close(done)
	for from, next := range nexts {
		running.Go(func() {
			for change, err, more := next(); more; change, err, more = next() {
				select {
				case received <- part{from, change, err}:
				case <-done:
					return
				}
			}
		})
	}
	for p := range received {
		m.add(p.from, &p.change)
		if !yield(p.change, p.err) || p.err != nil {
			return
		}
	}
}

// add records the markers and sets of a change, and replaces them by those of all scopes.
func (m *merged) add(from int, change *webui.Change) {
	if change.Markers != nil {
		m.markers[from] = change.Markers
		change.Markers = m.allMarkers()
	}
	if change.Sets != nil {
		m.sets[from] = change.Sets
		change.Sets = m.allSets()
	}
}

func (m *merged) allMarkers() []model.Marker {
	all := []model.Marker{}
	for _, markers := range m.markers {
		all = append(all, markers...)
	}
	return all
}

// allSets returns the sets of all scopes, with the note of the first scope that has one.
func (m *merged) allSets() *model.Sets {
	var all []model.Set
	note, total := "", 0
	for _, sets := range m.sets {
		if sets == nil {
			continue
		}
		all = append(all, sets.Sets...)
		total += sets.Total
		if note == "" {
			note = sets.Note
		}
	}
	found := model.SetsOf(all, note)
	found.Total = total
	return &found
}
