// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lapse decides since when the states of a node's pods are not current: because the node is not
// ready or is gone, or because no agent on it is ready to report. The package is pure.
//
// Invariants:
//   - A lapse is as long as the stored times say, so that a restart of the manager does not shorten it.
//     Only if no object has a time, it begins when it is first seen.
//   - While a lapse lasts, it never gets shorter, however the clock is set.
//   - When it has ended, it gets no longer, and Hold passes before the states count as current: what
//     the agent could not report before is reported first.
package lapse

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Hold is how long after a lapse the states do not count as current. The agent waits at most 5 seconds
// before it connects again, and then reports at once.
const Hold = 10 * time.Second

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
	// NotChecked means that the node is not known yet. Such a lapse has no length.
	NotChecked Cause = "NotChecked"
)

// Causes returns the causes of lapses that have a length.
func Causes() []Cause { return []Cause{NodeGone, NodeNotReady, AgentNotReady, AgentGone} }

// Lapse is a time in which the states of a node's pods are not current. The zero value means that they
// are.
type Lapse struct {
	// Cause is why.
	Cause Cause
	// Since is the begin, and Length how long it has lasted. They differ from the clock if it was set.
	Since  time.Time
	Length time.Duration
	// Unsure is whether no object had the time of the begin. To a manager that was just started, such a
	// lapse is new.
	Unsure bool
	// Ended is when the cause was first not seen any more. It is zero while the cause lasts.
	Ended time.Time
}

// Reaches reports whether states that are stale after the given time are stale.
func (l Lapse) Reaches(after time.Duration) bool {
	return l.Cause != "" && l.Cause != NotChecked && l.Length >= after
}

// agentGrace is how long a node may have no ready agent before it counts as lost. The replacement of an agent takes less.
const agentGrace = time.Minute

// Lost reports whether the node is lost: it is gone or not ready, or has had no ready agent for a minute.
func (l Lapse) Lost() bool {
	switch {
	case !l.Ended.IsZero():
		return false
	case l.Cause == NodeGone, l.Cause == NodeNotReady:
		return true
	default:
		return l.Reaches(agentGrace)
	}
}

// MayBeLonger reports whether the lapse lasts and may be longer than is known.
func (l Lapse) MayBeLonger() bool { return l.Ended.IsZero() && (l.Unsure || l.Cause == NotChecked) }

// Again returns how long after now, the time for which it was decided, the lapse must be decided
// again although no object changes, given the times after which states are stale. Zero means never.
func (l Lapse) Again(afters []time.Duration, now time.Time) time.Duration {
	if l.Cause == "" || l.Cause == NotChecked {
		return 0
	}
	if !l.Ended.IsZero() {
		return l.Ended.Add(Hold).Sub(now)
	}
	var first time.Duration
	for _, after := range afters {
		if left := after - l.Length; left > 0 && (first == 0 || left < first) {
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

// Next returns the lapse at the time now, given the last one that was decided for the node.
func Next(last Lapse, e Evidence, now time.Time) Lapse {
	if last.Cause == NotChecked {
		last = Lapse{}
	}
	cause, since := e.lapsed()
	if cause == "" {
		return last.end(now)
	}
	next := Lapse{Cause: cause, Since: now, Unsure: since.IsZero()}
	if !next.Unsure {
		// The times of objects are those of other clocks.
		next.Since = earlier(since, now)
	}
	switch {
	case last.Cause == "":
	case last.Ended.IsZero():
		next.Since, next.Unsure = earlier(next.Since, last.Since), last.Unsure
	default:
		// The time in which the states were current does not count.
		next.Since = earlier(next.Since, now.Add(-last.Length))
	}
	next.Length = max(last.Length, now.Sub(next.Since))
	return next
}

// end returns what follows the lapse if the node has no cause any more.
func (l Lapse) end(now time.Time) Lapse {
	if l.Cause == "" {
		return Lapse{}
	}
	if l.Ended.IsZero() || now.Before(l.Ended) {
		l.Ended = now
	}
	if now.Sub(l.Ended) >= Hold {
		return Lapse{}
	}
	return l
}

// lapsed returns why and since when the states are not current. The time is zero if no object has it.
func (e Evidence) lapsed() (Cause, time.Time) {
	agent, silent := e.silent()
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

// silent returns why and since when no agent of the node is ready. The time is zero if no object has it.
func (e Evidence) silent() (Cause, time.Time) {
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
