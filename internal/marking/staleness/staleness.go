// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package staleness decides since when the reported states of a node's pods are not current, and
// therefore when they become stale. During an outage nobody reports: the node is not ready or does
// not exist, or no agent on it is ready. The package is pure.
//
// Invariants:
//   - An outage is as long as the times in the objects say, so that a restart of the manager does not
//     shorten it. It begins when it is first seen only if no object has a time.
//   - An outage never gets shorter while it lasts, even if the clock is changed.
//   - An outage that has ended gets no longer. The states count as current after Grace, because the
//     agent first reports what it could not report before.
package staleness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Grace is how long after an outage the states do not count as current. The agent waits at most 5 seconds
// before it connects again, and then reports at once.
const Grace = 10 * time.Second

// Cause is why the states of a node's pods are not current. It is empty if they are.
type Cause string

// The causes.
const (
	// NodeGone means that there is no Node.
	NodeGone Cause = "NodeGone"
	// NodeNotReady means that the condition Ready of the Node is not True.
	NodeNotReady Cause = "NodeNotReady"
	// AgentNotReady means that the node has pods of the agent, of which none is ready.
	AgentNotReady Cause = "AgentNotReady"
	// AgentGone means that the node has no pod of the agent.
	AgentGone Cause = "AgentGone"
	// NotChecked means that the node is not known yet. Such an outage has no length.
	NotChecked Cause = "NotChecked"
)

// Causes returns the causes of outages that have a length.
func Causes() []Cause { return []Cause{NodeGone, NodeNotReady, AgentNotReady, AgentGone} }

// Outage is a period in which the states of a node's pods are not current. The zero value means that
// they are current.
type Outage struct {
	// Cause is the cause of the outage.
	Cause Cause
	// Since is the start, and Length the duration so far. They differ from the clock if it was changed.
	Since  time.Time
	Length time.Duration
	// StartUnknown is whether no object has the time of the start. For a manager that was just started,
	// such an outage starts now.
	StartUnknown bool
	// Ended is when the cause was first not seen any more. It is zero while the cause lasts.
	Ended time.Time
}

// MakesStale reports whether the outage is long enough for states that become stale after the given time.
func (o Outage) MakesStale(after time.Duration) bool {
	return o.Cause != "" && o.Cause != NotChecked && o.Length >= after
}

// agentGrace is how long a node may have no ready agent before it counts as lost. The replacement of an agent takes less.
const agentGrace = time.Minute

// Lost reports whether the node is lost: it is gone or not ready, or has had no ready agent for a minute.
func (o Outage) Lost() bool {
	switch {
	case !o.Ended.IsZero():
		return false
	case o.Cause == NodeGone, o.Cause == NodeNotReady:
		return true
	default:
		return o.MakesStale(agentGrace)
	}
}

// MayBeLonger reports whether the outage lasts and may be longer than is known.
func (o Outage) MayBeLonger() bool {
	return o.Ended.IsZero() && (o.StartUnknown || o.Cause == NotChecked)
}

// NextCheck returns how long after now Decide must be called again although no object changes, given the
// times after which states become stale. now is the time of the last decision. Zero means never.
func (o Outage) NextCheck(afters []time.Duration, now time.Time) time.Duration {
	if o.Cause == "" || o.Cause == NotChecked {
		return 0
	}
	if !o.Ended.IsZero() {
		return o.Ended.Add(Grace).Sub(now)
	}
	var first time.Duration
	for _, after := range afters {
		if left := after - o.Length; left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	return first
}

// Node is what is known about a Node.
type Node struct {
	// Ready is the status of its condition Ready. It is empty if it has none, which is no evidence: the
	// node controller adds the condition to a Node without a kubelet after a minute.
	Ready corev1.ConditionStatus
	// Since is when the condition last changed.
	Since time.Time
	// Agentless is whether no agent is expected on the node.
	Agentless bool
}

// Agent is what is known about a pod of the agent.
type Agent struct {
	// Ready is whether its condition Ready is True.
	Ready bool
	// Since is when the condition last changed, or when the pod was created if it has none.
	Since time.Time
	// Deleted is when its deletion was requested. It is zero if it was not.
	Deleted time.Time
}

// Evidence is what is known about a node.
type Evidence struct {
	// Node is the Node, or nil if there is none.
	Node *Node
	// Agents are the pods of the agent on the node.
	Agents []Agent
}

// Decide returns the outage at the time now, given the last decision for the node.
func Decide(last Outage, e Evidence, now time.Time) Outage {
	if last.Cause == NotChecked {
		last = Outage{}
	}
	cause, since := e.outage()
	if cause == "" {
		return last.end(now)
	}
	next := Outage{Cause: cause, Since: now, StartUnknown: since.IsZero()}
	if !next.StartUnknown {
		// The times of objects are those of other clocks.
		next.Since = earlier(since, now)
	}
	switch {
	case last.Cause == "":
	case last.Ended.IsZero():
		next.Since, next.StartUnknown = earlier(next.Since, last.Since), last.StartUnknown
	default:
		// The time in which the states were current does not count.
		next.Since = earlier(next.Since, now.Add(-last.Length))
	}
	next.Length = max(last.Length, now.Sub(next.Since))
	return next
}

// end returns what follows the outage if the node has no cause any more.
func (o Outage) end(now time.Time) Outage {
	if o.Cause == "" {
		return Outage{}
	}
	if o.Ended.IsZero() || now.Before(o.Ended) {
		o.Ended = now
	}
	if now.Sub(o.Ended) >= Grace {
		return Outage{}
	}
	return o
}

// outage returns why and since when the states are not current. The time is zero if no object has it.
func (e Evidence) outage() (Cause, time.Time) {
	agent, silent := e.agentOutage()
	switch {
	case e.Node == nil && agent == AgentNotReady:
		// No object has the time at which the Node was deleted. The agent's pod is deleted then.
		return NodeGone, silent
	case e.Node == nil:
		return NodeGone, time.Time{}
	case e.Node.Agentless:
		agent = ""
	}
	if e.Node.Ready == "" || e.Node.Ready == corev1.ConditionTrue {
		return agent, silent
	}
	if agent == AgentNotReady {
		return NodeNotReady, earlier(silent, e.Node.Since)
	}
	return NodeNotReady, e.Node.Since
}

// agentOutage returns why and since when no agent of the node is ready. The time is zero if no object has it.
func (e Evidence) agentOutage() (Cause, time.Time) {
	if len(e.Agents) == 0 {
		return AgentGone, time.Time{}
	}
	var last time.Time
	for _, agent := range e.Agents {
		since := agent.Since
		switch {
		case agent.Ready && agent.Deleted.IsZero():
			return "", time.Time{}
		case agent.Ready:
			since = agent.Deleted
		case !agent.Deleted.IsZero():
			since = earlier(since, agent.Deleted)
		}
		// An agent that was ready later than the others has reported until then.
		if since.After(last) {
			last = since
		}
	}
	return AgentNotReady, last
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
