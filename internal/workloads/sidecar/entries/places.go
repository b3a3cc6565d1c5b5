// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// planning is a plan that is being made.
type planning struct {
	Server
	Plan
	// sets are those that inject, by age. undecided are the names of those that keep what they have, as it is.
	sets      []*candidate
	undecided map[string]bool
	// versions are the resource versions of all sets by name.
	versions map[string]string
	own      [Configurations][]ownEntry
	groups   []*group
	// frozen keeps the addresses of the stored entries.
	frozen bool
}

// candidate is a set that injects.
type candidate struct {
	*v1alpha1.SidecarSet
	// member is the set as a member of a group, if it is bound to named namespaces.
	member  member
	isBound bool
	failure admissionregistrationv1.FailurePolicyType
	// entry is its own entry. hasOwn is whether it has one, and isStored whether this one is stored as it should be.
	entry            admissionregistrationv1.MutatingWebhook
	hasOwn, isStored bool
	// home is the group whose stored entry selects what the set selects, nil if there is none.
	home *group
	// moves is whether the set leaves its own entry.
	moves bool
}

// ownEntry is the entry of one set. Without the set, the entry stays as it is.
type ownEntry struct {
	set   *candidate
	entry admissionregistrationv1.MutatingWebhook
}

// setName returns the name of the set that the entry is of.
func (e *ownEntry) setName() string { return strings.TrimSuffix(e.entry.Name, suffix) }

func (s Server) newPlanning(all []*v1alpha1.SidecarSet, stored Lists) *planning {
	p := &planning{
		Server: s, Plan: Plan{Entered: map[types.UID]bool{}, TooMany: map[types.UID]bool{}},
		undecided: map[string]bool{}, versions: map[string]string{},
	}
	for _, set := range all {
		if Injects(set) {
			c := &candidate{SidecarSet: set, failure: failurePolicy(set), entry: s.Entry(set)}
			c.member, c.isBound = s.newMember(set)
			p.sets = append(p.sets, c)
		}
		p.undecided[set.Name], p.versions[set.Name] = IsUndecided(set), comparableVersion(set.ResourceVersion)
	}
	slices.SortFunc(p.sets, func(a, b *candidate) int { return older(a.SidecarSet, b.SidecarSet) })
	for i, list := range stored {
		for j := range list {
			if name, isGroup := strings.CutSuffix(list[j].Name, groupSuffix); isGroup {
				p.groups = append(p.groups, parseGroup(name, i, &list[j]))
			} else {
				p.own[i] = append(p.own[i], ownEntry{entry: list[j]})
			}
		}
	}
	return p
}

// assign removes the stored entries that are not needed, and finds those of the sets.
func (p *planning) assign() {
	names := make(map[string]*candidate, len(p.sets))
	for _, c := range p.sets {
		names[c.Name] = c
	}
	p.assignOwn(names)
	for _, g := range p.groups {
		for _, m := range g.members {
			if c := names[m.set]; c != nil && c.home == nil && c.isBound && g.failure == c.failure && m.row == c.member.row {
				c.home = g
			}
		}
	}
	p.give(names)
	for _, g := range p.groups {
		kept := map[string]bool{}
		g.members = slices.DeleteFunc(g.members, func(m member) bool {
			c := names[m.set]
			switch {
			case c == nil:
				return !p.undecided[m.set]
			case c.hasOwn && !c.moves:
				return c.isStored
			default:
				extra := c.home != nil && (c.home != g || kept[m.set])
				kept[m.set] = true
				return extra
			}
		})
		for i := range g.members {
			if c := names[g.members[i].set]; c != nil && c.home == g {
				g.members[i] = c.member
			}
		}
		g.count()
	}
}

// assignOwn removes own entries that are not needed, and finds those of the sets. If a set has several, for example because
// one was restored, the one that is stored as it should be is its entry, and the others go. If none is, they stay until one
// is.
func (p *planning) assignOwn(names map[string]*candidate) {
	entries := make(map[*candidate]*ownEntry, len(names))
	for i := range p.own {
		p.own[i] = slices.DeleteFunc(p.own[i], func(e ownEntry) bool { return names[e.setName()] == nil && !p.undecided[e.setName()] })
		for j := range p.own[i] {
			e := &p.own[i][j]
			c := names[e.setName()]
			if c == nil || c.isStored {
				continue
			}
			isStored := equality.Semantic.DeepEqual(e.entry, c.entry)
			if !c.hasOwn || isStored {
				entries[c], c.hasOwn, c.isStored = e, true, isStored
			}
		}
	}
	for c, e := range entries {
		e.set = c
	}
	for i := range p.own {
		p.own[i] = slices.DeleteFunc(p.own[i], func(e ownEntry) bool {
			c := names[e.setName()]
			return c != nil && e.set == nil && c.isStored
		})
	}
}

// give decides which sets leave their own entries to sets that cannot share one. An entry stays until the one that the
// set shares instead is stored.
func (p *planning) give(names map[string]*candidate) {
	needed := -p.free()
	var able []*candidate
	for _, c := range p.sets {
		switch {
		case !c.hasOwn && !c.isBound:
			needed++
		case c.hasOwn && c.isBound:
			able = append(able, c)
		}
	}
	// Those that share an entry already are first, then the youngest.
	slices.Reverse(able)
	ready, others := able[:0:0], able[:0:0]
	for _, c := range able {
		if c.home != nil {
			ready = append(ready, c)
		} else {
			others = append(others, c)
		}
	}
	able = append(ready, others...)
	for _, c := range able[:max(0, min(needed, len(able)))] {
		c.moves = true
	}
	for i := range p.own {
		p.own[i] = slices.DeleteFunc(p.own[i], func(e ownEntry) bool {
			c := names[e.setName()]
			gone := c != nil && c.moves && c.home != nil
			if gone {
				c.hasOwn = false
			}
			return gone
		})
	}
}

// free returns the number of places for own entries.
func (p *planning) free() int {
	free := Configurations * ownPerConfiguration
	for i := range p.own {
		free -= len(p.own[i])
	}
	return free
}

// place gives each set without a stored entry one, as far as there are places.
func (p *planning) place() {
	var bound, waiting []*candidate
	leaving := 0
	for _, c := range p.sets {
		switch {
		case c.hasOwn && c.moves:
			// It is entered, and the place is free when the group is stored.
			p.Entered[c.UID] = true
			if p.join(c) {
				leaving++
			}
		case c.hasOwn || c.home != nil:
			p.Entered[c.UID] = true
		case c.isBound:
			bound = append(bound, c)
		case !p.placeOwn(c):
			waiting = append(waiting, c)
		}
	}
	for i, c := range waiting {
		p.TooMany[c.UID] = i >= leaving
	}
	for _, c := range bound {
		if p.update(c) || p.placeOwn(c) || p.join(c) {
			p.Entered[c.UID] = true
		} else {
			p.TooMany[c.UID] = true
		}
	}
}

// placeOwn adds an entry of its own for the set to the configuration with the fewest, and reports whether there is a
// place.
func (p *planning) placeOwn(c *candidate) bool {
	least := 0
	for i := range p.own {
		if len(p.own[i]) < len(p.own[least]) {
			least = i
		}
	}
	if len(p.own[least]) >= ownPerConfiguration {
		return false
	}
	p.own[least] = append(p.own[least], ownEntry{set: c})
	p.Entered[c.UID] = true
	return true
}

// update changes what the set has in the entry that it shares, and reports whether it has one with room.
func (p *planning) update(c *candidate) bool {
	for _, g := range p.groups {
		i := slices.IndexFunc(g.members, func(m member) bool { return m.set == c.Name })
		if i >= 0 && g.failure == c.failure && g.bytes-g.members[i].bytes()+c.member.bytes() <= bytesPerGroup {
			g.members[i] = c.member
			g.count()
			return true
		}
	}
	return false
}

// join adds the set to the first group that has room, and reports whether there is one.
func (p *planning) join(c *candidate) bool {
	if p.update(c) {
		return true
	}
	bytes := c.member.bytes()
	for _, g := range p.groups {
		if g.failure == c.failure && len(g.members) < setsPerGroup && g.bytes+bytes <= bytesPerGroup {
			g.members = append(g.members, c.member)
			g.count()
			return true
		}
	}
	if len(p.groups) == Configurations*groupsPerConfiguration || bytes > bytesPerGroup {
		return false
	}
	number := [Configurations]int{}
	names := map[string]bool{}
	for _, g := range p.groups {
		number[g.configuration]++
		names[g.name] = true
	}
	g := &group{failure: c.failure, members: []member{c.member}, configuration: slices.Index(number[:], slices.Min(number[:]))}
	for i := 0; g.name == "" || names[g.name]; i++ {
		g.name = fmt.Sprintf("%s-%d", strings.ToLower(string(c.failure)), i)
	}
	g.count()
	p.groups = append(p.groups, g)
	return true
}

// build returns the plan.
func (p *planning) build() Plan {
	for i := range p.own {
		for _, e := range p.own[i] {
			switch {
			case e.set != nil:
				e.entry = e.set.entry
			case !p.frozen:
				e.entry.ClientConfig = p.at("/inject/" + e.setName())
			}
			p.Lists[i] = append(p.Lists[i], e.entry)
		}
	}
	for _, g := range p.groups {
		if len(g.members) == 0 {
			continue
		}
		entry := p.group(g, p.versions)
		if p.frozen {
			entry.ClientConfig = g.client
		}
		p.Lists[g.configuration] = append(p.Lists[g.configuration], entry)
	}
	return p.Plan
}
