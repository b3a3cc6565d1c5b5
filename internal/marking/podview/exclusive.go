// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package podview

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
	"github.com/seamark-dev/seamark/internal/marking/extract"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Contest is whether a pod has the marks of an exclusive policy.
type Contest struct {
	plan.Exclusive
	// Group is the group of the pod, and Grouped whether it is in one: without one, it does not get the marks.
	Group   string
	Grouped bool
	// Self is what the pod is in its group.
	Self exclusive.Candidate
	// Result is what is decided about the group.
	exclusive.Result
	// Cleared is whether the API server has answered that no other pod of the group has the ticket. Otherwise, Obstacle says why not.
	Cleared  bool
	Obstacle string

	// own are the marks that belong to the policy in the pod: those whose keys no other probe of the pod has. An ending pod has
	// no probes, and keeps the marks of the policy.
	own mark.Marks
	// ticket is the key of Ticket.
	ticket mark.Key
	// holds is whether Seamark has given the pod the ticket and one of the marks.
	holds bool
}

// WithContests returns the view with the contests of the pod, of which nothing is decided. owned are Seamark's marks on the pod. A
// pod that is ending is in those for which it has a ticket.
func (p Pod) WithContests(markers []*plan.Marker, owned mark.Marks) Pod {
	var claims mark.Claims
	planned := make(map[identity.ID]plan.PlannedProbe)
	for _, marker := range markers {
		if len(marker.Exclusives()) == 0 || !marker.Selects(p.Object) {
			continue
		}
		if claims == nil {
			claims, _ = mark.Claim(p.Plan.Probes)
			for _, probe := range p.Plan.Probes {
				planned[probe.ID] = probe
			}
		}
		for _, e := range marker.Exclusives() {
			if _, has := p.Object.Labels[e.Ticket]; !has && plan.Ending(p.Object) {
				continue
			}
			c := &Contest{Exclusive: e, own: mark.Fixed(e.Policy).Unclaimed(claims, e.ID), ticket: mark.Label(e.Ticket)}
			c.Group, c.Grouped = e.Group(p.Object)
			c.Self = c.candidate(p, planned, claims, owned)
			c.holds = c.Self.Ticket && len(c.own.Intersect(owned)) > 0
			p.Contests = append(p.Contests, c)
		}
	}
	return p
}

// candidate returns what the pod is in its group. A pod that is ending, about which nothing is reported, or all of whose keys
// belong to other probes claims nothing. owned are the marks that Seamark owns on the pod.
func (c *Contest) candidate(p Pod, planned map[identity.ID]plan.PlannedProbe, claims mark.Claims, owned mark.Marks) exclusive.Candidate {
	self := exclusive.Candidate{Name: p.Object.Name, UID: p.Object.UID, Marked: c.own.AnyIn(p.Object), Ticket: c.Grouped && c.hasTicket(p.Object)}
	probe, runs := planned[c.ID]
	if !runs {
		return self
	}
	state, known := p.Report.Effective(probe, claims, owned)
	self.Unreported = !known && p.Report.Unreported()
	if state.State != c.Policy.State || len(c.own) == 0 {
		return self
	}
	self.Claims, self.Since = true, state.LastTransitionTime.Time
	if from := c.Policy.Exclusive.TermFrom; from != nil {
		if term, refusal := extract.Integer(state.Message, from.JSONPath); refusal == nil {
			self.Term = &term
		}
	}
	return self
}

// hasTicket reports whether the pod has the ticket for its group.
func (c *Contest) hasTicket(pod *corev1.Pod) bool {
	group, found := pod.Labels[c.Ticket]
	return found && group == c.Group
}

// Seat is what the pod contends for.
func (c *Contest) Seat() exclusive.Seat {
	return exclusive.Seat{Probe: c.ID.Probe, State: string(c.Policy.State), Group: c.Group}
}

// Wins reports whether the pod has the best claim.
func (c *Contest) Wins() bool { return c.Winner != nil && c.Winner.UID == c.Self.UID }

// loses reports whether the pod must not have the marks.
func (c *Contest) loses() bool { return !c.Grouped || c.Winner != nil && !c.Wins() }

// Takes reports whether the pod gets the marks if no other pod has the ticket.
func (c *Contest) Takes() bool {
	return c.Grouped && c.Wins() && !c.holds && c.Self.Ticket && c.Blocker == nil
}

// permits reports whether the pod may have the marks.
func (c *Contest) permits() bool {
	return !c.loses() && (c.holds || c.Wins() && c.Cleared)
}

// hold returns why the pod may not have the marks of its state, or an empty Hold if it may or its state has none.
func (c *Contest) hold() mark.Hold {
	switch {
	case !c.Self.Claims || c.permits():
		return ""
	case c.loses():
		return mark.Lost
	default:
		return mark.Waiting
	}
}

// Why says what a pod that gets the marks waits for.
func (c *Contest) Why() string {
	switch {
	case c.Obstacle != "":
		return c.Obstacle
	case c.Blocker != nil && c.Blocker.Marked:
		return fmt.Sprintf("pod %s still has them", c.Blocker.Name)
	case c.Blocker != nil:
		return fmt.Sprintf("pod %s may still get them", c.Blocker.Name)
	case !c.Decided:
		return "not all pods of the marker have been looked at yet"
	default:
		return "the cache does not have the latest version of the pod"
	}
}

// ApplyContests returns the view after its contests are decided: the pod has the marks of exclusive policies only if it may have them.
func (p Pod) ApplyContests() Pod {
	for _, c := range p.Contests {
		if hold := c.hold(); hold != "" {
			if p.Report.Held == nil {
				p.Report.Held = make(map[identity.ID]mark.Hold)
			}
			p.Report.Held[c.ID] = hold
		}
	}
	return p
}

// Compete returns the view of a pod in the contests among all pods of its namespace, where they are current and nobody else
// writes, as in a local run.
func (p Pod) Compete(markers []*plan.Marker, pods []Pod) Pod {
	p = p.WithContests(markers, p.owned())
	elections := make(map[string]*exclusive.Election)
	for _, other := range pods {
		for marker, as := range other.WithContests(markers, other.owned()).Candidates() {
			if elections[marker] == nil {
				elections[marker] = exclusive.NewElection()
			}
			elections[marker].Report(other.Object.Name, as)
		}
	}
	for _, c := range p.Contests {
		if election := elections[c.ID.Marker]; c.Grouped && election != nil {
			c.Result = election.Result(c.Seat())
			c.Cleared = c.Takes()
		}
	}
	return p.ApplyContests()
}

// owned returns Seamark's marks on the pod, or none if its managed fields cannot be parsed.
func (p Pod) owned() mark.Marks {
	owned, err := mark.Owned(p.Object)
	if err != nil {
		return nil
	}
	return owned
}

// Candidates returns what the pod is for each seat for which it matters, by marker. There is an entry for each marker that has
// exclusive policies and selects the pod.
func (p Pod) Candidates() map[string]map[exclusive.Seat]exclusive.Candidate {
	all := make(map[string]map[exclusive.Seat]exclusive.Candidate)
	for _, c := range p.Contests {
		if all[c.ID.Marker] == nil {
			all[c.ID.Marker] = make(map[exclusive.Seat]exclusive.Candidate)
		}
		if c.Grouped && c.Self.Matters() {
			all[c.ID.Marker][c.Seat()] = c.Self
		}
	}
	return all
}

// WithTickets returns the view of a pod whose group is not known: its ticket says whether it has the marks, or gets them.
func (p Pod) WithTickets(markers []*plan.Marker) Pod {
	p = p.WithContests(markers, p.owned())
	for _, c := range p.Contests {
		switch c.Decided = true; {
		case c.Self.Ticket || c.Self.Marked:
			c.Winner = &c.Self
		case c.Self.Claims:
			c.Winner = &exclusive.Candidate{}
		}
	}
	return p.ApplyContests()
}

// restrict removes the exclusive marks that the pod may not have, and adds the tickets. A pod that has marks without the ticket
// keeps them until it has the ticket, or another pod wins.
func (p Pod) restrict(owned, desired mark.Marks) mark.Marks {
	for _, c := range p.Contests {
		marks := c.own.Intersect(desired)
		if !c.permits() {
			for key := range marks {
				if c.loses() || !owned.Has(key) {
					delete(desired, key)
					delete(marks, key)
				}
			}
		}
		delete(desired, c.ticket)
		if keeps := owned.Has(c.ticket) && (len(marks) > 0 || !c.Decided); c.Grouped && !c.loses() && (c.Wins() || keeps) {
			desired[c.ticket] = mark.Value{Text: c.Group}
		}
	}
	return desired
}

// KeepTickets adds to desired the tickets of all that the pod already has, and returns it: without them, a pod whose exclusive
// marks are refused would lose and get its ticket repeatedly.
func (p Pod) KeepTickets(owned, all, desired mark.Marks) mark.Marks {
	for _, c := range p.Contests {
		if value, wanted := all[c.ticket]; wanted && owned.Has(c.ticket) {
			desired[c.ticket] = value
		}
	}
	return desired
}

// Claims returns the probes that the keys belong to, those of the tickets included.
func (p Pod) Claims() mark.Claims {
	claims, _ := mark.Claim(p.Plan.Probes)
	for _, c := range p.Contests {
		claims[c.ticket] = c.ID
	}
	return claims
}

// InGroup returns the desired marks that one write may set: without the exclusive ones of a group that the write moves the
// pod out of. In the other group, nothing is decided yet, and other writes set them there.
func (p Pod) InGroup(owned, desired mark.Marks) mark.Marks {
	kept := desired
	for _, c := range p.Contests {
		if !c.moves(p.Object, owned, desired) {
			continue
		}
		kept = maps.Clone(kept)
		delete(kept, c.ticket)
		for key := range c.own.Intersect(kept) {
			delete(kept, key)
		}
	}
	return kept
}

// moves reports whether the write of the desired marks changes the group of the pod.
func (c *Contest) moves(pod *corev1.Pod, owned, desired mark.Marks) bool {
	label := mark.Label(c.Policy.Exclusive.PerLabel)
	if label.Name == "" {
		return false
	}
	value, set := desired[label]
	if !set {
		return owned.Has(label)
	}
	before, found := label.In(pod)
	return !found || before != value.Text
}

// foreign adds the exclusive marks that the pod may not have, and the tickets that it should not have, and that an apply would
// not remove.
func (p Pod) foreign(leftover []mark.Key, owned, desired mark.Marks) []mark.Key {
	shared := mark.Shared(p.Object.ManagedFields)
	for _, c := range p.Contests {
		_, found := p.Object.Labels[c.ticket.Name]
		// A ticket that an apply would not remove is removed together with the marks, not before them.
		explicit := found && !desired.Has(c.ticket) && (!owned.Has(c.ticket) || shared.Has(c.ticket))
		var keys []mark.Key
		if c.loses() || explicit {
			keys = c.own.In(p.Object).Keys()
		}
		if explicit {
			keys = append(keys, c.ticket)
		}
		stays := c.own.Intersect(desired)
		for _, key := range keys {
			removed := explicit && !stays.Has(key) || !desired.Has(key) && (!owned.Has(key) || shared.Has(key))
			if removed && !slices.Contains(leftover, key) {
				leftover = append(leftover, key)
			}
		}
	}
	return leftover
}

// Yields reports whether another pod waits until this one has lost its exclusive marks.
func (p Pod) Yields() bool {
	return slices.ContainsFunc(p.Contests, func(c *Contest) bool { return c.loses() && (c.Self.Marked || c.Self.Ticket) })
}

// Loss says why the pod does not have the exclusive marks of the state of the probe. The selector finds the pod that has them,
// or all pods with the marks.
func (p Pod) Loss(probe identity.ID) (reason, selector string) {
	for _, c := range p.Contests {
		switch {
		case c.ID != probe || c.hold() != mark.Lost:
		case !c.Grouped:
			return fmt.Sprintf("the pod does not have the label %s of exclusive.perLabel", c.Policy.Exclusive.PerLabel), c.Ticket
		default:
			return "another pod has the exclusive marks, or they are being moved", c.Ticket + "=" + c.Group
		}
	}
	return "", ""
}

// HasExclusive reports whether one of the marks is exclusive.
func (p Pod) HasExclusive(marks mark.Marks) bool {
	return slices.ContainsFunc(p.Contests, func(c *Contest) bool { return len(c.own.Intersect(marks)) > 0 })
}
