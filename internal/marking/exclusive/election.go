// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Election is the election of one generation of a marker: the candidates of all its seats. Each pod that the marker selects
// reports what it is. A report takes as long with many candidates as with few, unless the claim of a winner gets worse. It is not
// safe for concurrent use.
type Election struct {
	// pending are the pods that have not reported yet. As long as there is one, nothing is decided.
	pending sets.Set[string]
	// seats are those of each pod that has reported.
	seats  map[string][]Seat
	groups map[Seat]*group
}

// group are the candidates of a seat, by name of the pod.
type group struct {
	candidates map[string]Candidate
	// winner has the best claim, and is empty if there is none. holders have the marks or the ticket.
	winner  string
	holders sets.Set[string]
}

// NewElection returns an election in which nothing is decided until the pods have reported, or are gone.
func NewElection(pods ...string) *Election {
	return &Election{pending: sets.New(pods...), seats: make(map[string][]Seat), groups: make(map[Seat]*group)}
}

// Result is what is decided about a seat.
type Result struct {
	// Decided is whether all pods have reported. Until then, pods keep what they have.
	Decided bool
	// Winner is the pod with the best claim. If it is nil and Decided is set, no pod claims the marks.
	Winner *Candidate
	// Blocker is another pod that still has the marks or the ticket, or nil. The winner gets the marks after it has lost them.
	Blocker *Candidate
}

// Result returns what is decided about the seat.
func (e *Election) Result(seat Seat) Result {
	r := Result{Decided: len(e.pending) == 0}
	if !r.Decided {
		return r
	}
	g := e.groups[seat]
	if g == nil || g.winner == "" {
		return r
	}
	winner := g.candidates[g.winner]
	r.Winner = &winner
	first := ""
	for name := range g.holders {
		if name != g.winner && (first == "" || name < first) {
			first = name
		}
	}
	if first != "" {
		blocker := g.candidates[first]
		r.Blocker = &blocker
	}
	return r
}

// Report replaces what is known about the pod by the seats for which it matters. It returns the names of other pods whose
// marks have to be looked at.
func (e *Election) Report(pod string, as map[Seat]Candidate) (others []string) {
	return e.change(pod, as, func() { e.seats[pod] = slices.Collect(maps.Keys(as)) })
}

// Leave removes the pod. It returns the names of pods whose marks have to be looked at.
func (e *Election) Leave(pod string) (others []string) {
	return e.change(pod, nil, func() { delete(e.seats, pod) })
}

// IsEmpty reports whether the marker selects no pod.
func (e *Election) IsEmpty() bool { return len(e.pending)+len(e.seats) == 0 }

// change changes the candidates of the pod, and what they are of it.
func (e *Election) change(pod string, as map[Seat]Candidate, note func()) []string {
	opens := e.pending.Len() == 1 && e.pending.Has(pod)
	decided := len(e.pending) == 0
	e.pending.Delete(pod)
	others := sets.New[string]()
	for _, seat := range e.seats[pod] {
		if _, stays := as[seat]; !stays {
			others.Insert(e.set(seat, pod, nil)...)
		}
	}
	for seat, candidate := range as {
		others.Insert(e.set(seat, pod, &candidate)...)
	}
	note()
	switch {
	case opens:
		for _, g := range e.groups {
			others.Insert(slices.Collect(maps.Keys(g.candidates))...)
		}
	case !decided:
		return nil
	}
	return sets.List(others.Delete(pod, ""))
}

// set replaces the pod's candidate for the seat, or removes it, and returns the pods to look at: those for which the winner
// changes, and a winner that waits.
func (e *Election) set(seat Seat, pod string, candidate *Candidate) []string {
	g := e.groups[seat]
	if g == nil {
		g = &group{candidates: make(map[string]Candidate), holders: sets.New[string]()}
	}
	before, found := g.candidates[pod]
	if candidate == nil && !found || candidate != nil && found && before.equal(*candidate) {
		return nil
	}
	last := g.candidates[g.winner]
	g.put(pod, before, candidate)
	if e.groups[seat] = g; len(g.candidates) == 0 {
		delete(e.groups, seat)
	}
	next := g.candidates[g.winner]
	switch {
	case g.winner == "", last.UID == next.UID && next.Marked && !next.Unreported:
		return nil
	case last.UID == next.UID:
		return []string{next.Name}
	}
	return append(g.holders.UnsortedList(), next.Name, last.Name)
}

// put replaces the candidate of the pod, which was before, and finds the winner.
func (g *group) put(pod string, before Candidate, candidate *Candidate) {
	g.holders.Delete(pod)
	if candidate == nil {
		delete(g.candidates, pod)
	} else if g.candidates[pod] = *candidate; candidate.Marked || candidate.Ticket {
		g.holders.Insert(pod)
	}
	contends := candidate != nil && candidate.contends()
	switch {
	case pod == g.winner && (!contends || compare(*candidate, before) > 0):
		g.winner = ""
		for name, c := range g.candidates {
			if c.contends() && (g.winner == "" || compare(c, g.candidates[g.winner]) < 0) {
				g.winner = name
			}
		}
	case contends && (g.winner == "" || compare(*candidate, g.candidates[g.winner]) < 0):
		g.winner = pod
	}
}
