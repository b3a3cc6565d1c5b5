// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/marking/exclusive"
)

// rules are the rules for writes that a model breaks. Each of them must be found.
type rules struct {
	// noVersion writes marks without a condition, noLook does not ask the API server, and oldLook accepts any answer. bare
	// writes the marks without the ticket, keep removes the ticket and not the marks, and carry moves a pod to another group
	// together with both. deaf does not look at the pods that an election names, and stay waits for the ticket of a
	// pod that has left the group.
	noVersion, noLook, oldLook, bare, keep, carry, deaf, stay bool
}

// stalls reports whether the broken rule prevents that a pod gets the marks, in place of permitting a second one.
func (r rules) stalls() bool { return r == (rules{}) || r.deaf || r.stay }

// groups is how many groups there are at most. A pod without the label of a group is in none of them.
const (
	groups = 2
	none   = -1
)

// stored is a version of a pod in the API server. Claims and terms are in the reports of agents, and are part of the pod here.
type stored struct {
	exclusive.Candidate
	exists  bool
	version int
	// group is what the label says, and wants what another probe reports, of which the label is a mark. ticket is the group of
	// the ticket.
	group, wants, ticket int
}

// manager believes to lead. Its cache has an old version of each pod.
type manager struct {
	pods     map[string]stored
	election *exclusive.Election
	queue    sets.Set[string]
}

// request is under way, and arrives at any time, whether or not its sender still exists.
type request struct {
	by     *manager
	pod    string
	arrive func() bool
	then   func()
}

// model is an API server with the pods of up to two groups, and two managers.
type model struct {
	*rand.Rand
	broken   rules
	version  int
	groups   int
	names    []string
	pods     map[string]stored
	history  map[string][]stored
	managers [2]*manager
	requests []request
	// calm is whether no write is refused and no response lost, except those of the frozen pod.
	calm   bool
	frozen string
	taken  int
}

// newModel returns a model with three pods in one group, or four in two.
func newModel(seed uint64, broken rules) *model {
	m := &model{
		Rand: rand.New(rand.NewPCG(seed, 24)), broken: broken, version: 1000, groups: 1 + int(seed%groups),
		pods: make(map[string]stored), history: make(map[string][]stored),
	}
	for i := range 2 + m.groups {
		name := fmt.Sprintf("pod-%d", i)
		m.names = append(m.names, name)
		m.create(name)
	}
	for i := range m.managers {
		m.managers[i] = &manager{}
		m.restart(m.managers[i])
	}
	return m
}

// put stores the next version of the pod.
func (m *model) put(pod stored) {
	m.version++
	pod.version = m.version
	m.pods[pod.Name] = pod
	m.history[pod.Name] = append(m.history[pod.Name], pod)
}

func (m *model) create(name string) {
	group := m.IntN(m.groups)
	uid := types.UID("uid-" + strconv.Itoa(m.version))
	m.put(stored{exists: true, group: group, wants: group, ticket: none, Candidate: exclusive.Candidate{Name: name, UID: uid}})
}

// restart starts the manager: it lists the pods.
func (m *model) restart(by *manager) {
	by.pods, by.queue = make(map[string]stored), sets.New(m.names...)
	var found []string
	for _, name := range m.names {
		if by.pods[name] = m.pods[name]; m.pods[name].exists {
			found = append(found, name)
		}
	}
	by.election = exclusive.NewElection(found...)
}

// one returns true once in n times.
func (m *model) one(n int) bool { return m.IntN(n) == 0 }

// step does one thing that may happen.
func (m *model) step() {
	name := m.names[m.IntN(len(m.names))]
	pod := m.pods[name]
	switch by := m.managers[m.IntN(2)]; m.IntN(20) {
	case 0: // The probe has another state, prints another term, or nothing is reported about it.
		m.report(pod)
	case 1: // The kubelet writes the status.
		if pod.exists {
			m.put(pod)
		}
	case 2:
		switch {
		case !pod.exists:
			m.create(name)
		case m.one(2):
			pod.exists = false
			m.put(pod)
		}
	case 3, 4, 5, 6: // A watch event arrives.
		m.observe(by, name)
	case 7, 8, 9, 10, 11:
		m.reconcile(by, m.next(by, name))
	case 12: // Another probe reports another group, which Seamark writes.
		pod.wants = m.IntN(m.groups)
		m.pods[name] = pod
	case 13: // A user writes the label of the group, but brings no marks into a group.
		group := m.IntN(m.groups+1) + none
		if !pod.exists || pod.Marked && group != none || !m.one(3) {
			break
		}
		if pod.group, pod.wants = group, group; group == none {
			pod.wants = m.IntN(m.groups)
		}
		m.put(pod)
	default:
		m.deliver()
	}
	if m.one(100) {
		m.kill()
	}
}

// report changes what is reported about the pod.
func (m *model) report(pod stored) {
	pod.Claims, pod.Since = !m.one(4), time.Unix(int64(m.version), 0)
	if pod.Unreported = m.one(5); pod.Unreported {
		pod.Claims = false
	}
	if pod.Term = nil; m.one(2) {
		term := int64(m.IntN(4))
		pod.Term = &term
	}
	m.pods[pod.Name] = pod
}

// next returns a pod in the queue of the manager, or the other one if the queue is empty.
func (m *model) next(by *manager, other string) string {
	if by.queue.Len() == 0 {
		return other
	}
	return sets.List(by.queue)[m.IntN(by.queue.Len())]
}

func (m *model) observe(by *manager, name string) {
	by.pods[name] = m.pods[name]
	by.queue.Insert(name)
}

func (m *model) deliver() {
	if len(m.requests) == 0 {
		return
	}
	i := m.IntN(len(m.requests))
	r := m.requests[i]
	m.requests = append(m.requests[:i:i], m.requests[i+1:]...)
	ok := r.arrive()
	lost := !m.calm && m.one(6)
	if r.by.queue.Insert(r.pod); ok && !lost && r.then != nil {
		// The response may arrive long after it was made.
		m.requests = append(m.requests, request{by: r.by, pod: r.pod, arrive: func() bool { r.then(); return true }})
	}
}

// kill restarts the sender of a request, which never arrives.
func (m *model) kill() {
	if len(m.requests) > 0 {
		i := m.IntN(len(m.requests))
		by := m.requests[i].by
		m.requests = append(m.requests[:i:i], m.requests[i+1:]...)
		m.restart(by)
	}
}

// write changes the pod with the UID. Zero is no condition for the version.
func (m *model) write(by *manager, target stored, version int, marked bool, ticket, group int) {
	m.requests = append(m.requests, request{by: by, pod: target.Name, arrive: func() bool {
		pod := m.pods[target.Name]
		if !pod.exists || pod.UID != target.UID || version != 0 && version != pod.version || !m.calm && m.one(8) || m.frozen == pod.Name {
			return false
		}
		if marked && !pod.Marked {
			m.taken++
		}
		pod.Marked, pod.ticket, pod.group = marked, ticket, group
		m.put(pod)
		return true
	}})
}

// candidate is what is known about the pod in its group.
func (p stored) candidate() exclusive.Candidate {
	c := p.Candidate
	c.Ticket = p.ticket == p.group
	return c
}

func seatOf(group int) exclusive.Seat {
	return exclusive.Seat{Probe: "p", State: "Succeeded", Group: strconv.Itoa(group)}
}

// reconcile decides about a pod with the view of a manager, as a controller does.
func (m *model) reconcile(by *manager, name string) {
	by.queue.Delete(name)
	pod := by.pods[name]
	as := make(map[exclusive.Seat]exclusive.Candidate)
	if c := pod.candidate(); pod.exists && pod.group != none && c.Matters() {
		as[seatOf(pod.group)] = c
	}
	others := by.election.Leave(name)
	if pod.exists {
		others = append(others, by.election.Report(name, as)...)
	}
	if !m.broken.deaf {
		by.queue.Insert(others...)
	}
	switch {
	case !pod.exists:
	case pod.group == none || pod.wants != pod.group:
		switch {
		case m.broken.carry && pod.group != none:
			m.write(by, pod, pod.version, pod.Marked, pod.wants, pod.wants)
		case pod.Marked || pod.ticket != none || pod.wants != pod.group:
			m.write(by, pod, 0, false, none, pod.wants)
		}
	default:
		m.decide(by, pod, by.election.Result(seatOf(pod.group)))
	}
}

// decide writes what a pod that stays in its group should have.
func (m *model) decide(by *manager, pod stored, result exclusive.Result) {
	wins := result.Winner != nil && result.Winner.UID == pod.UID
	switch {
	case !result.Decided:
	case !wins && (result.Winner != nil || !pod.Claims && !pod.Unreported):
		if pod.Marked || pod.ticket != none {
			m.write(by, pod, 0, m.broken.keep && pod.Marked, none, pod.group)
		}
	case !wins:
	case pod.Marked && (pod.ticket != pod.group || m.one(2)): // Another mark changes.
		m.write(by, pod, m.on(pod), true, m.ticket(pod), pod.group)
	case pod.Marked:
	case pod.ticket != pod.group:
		m.write(by, pod, 0, false, pod.group, pod.group)
	case result.Blocker == nil:
		m.look(by, pod)
	}
}

func (m *model) ticket(pod stored) int {
	if m.broken.bare {
		return none
	}
	return pod.group
}

func (m *model) on(pod stored) int {
	if m.broken.noVersion {
		return 0
	}
	return pod.version
}

// look asks the API server for other pods with the ticket, and writes the marks if there are none.
func (m *model) look(by *manager, pod stored) {
	answered := false
	m.requests = append(m.requests, request{by: by, pod: pod.Name, arrive: func() bool {
		first := pod.version
		if m.broken.oldLook {
			first = 1000
		}
		answered = m.broken.noLook || !m.ticketed(pod, first+m.IntN(m.version-first+1))
		return true
	}, then: func() {
		if answered {
			m.write(by, pod, m.on(pod), true, m.ticket(pod), pod.group)
		}
	}})
}

// ticketed reports whether another pod of the group had the ticket as of the version.
func (m *model) ticketed(pod stored, version int) bool {
	return slices.ContainsFunc(m.names, func(name string) bool {
		all := m.history[name]
		i, _ := slices.BinarySearchFunc(all, version+1, func(s stored, v int) int { return s.version - v })
		if i == 0 {
			return false
		}
		other := all[i-1]
		return other.exists && other.UID != pod.UID && other.ticket == pod.group && (other.group == pod.group || m.broken.stay)
	})
}
