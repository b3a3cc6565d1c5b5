// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package staleness_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/expect"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns a time in seconds after the start of the test.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func node(ready corev1.ConditionStatus, since int) *staleness.Node {
	return &staleness.Node{Ready: ready, Since: at(since)}
}

func TestDecide(t *testing.T) {
	const ready, notReady, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	up, down := staleness.Agent{Ready: true, Since: at(-100)}, staleness.Agent{Since: at(-40)}
	leaving := staleness.Agent{Ready: true, Since: at(-100), Deleted: at(-5)}
	agents := func(all ...staleness.Agent) []staleness.Agent { return all }
	of := func(cause staleness.Cause, since, length int) staleness.Outage {
		return staleness.Outage{Cause: cause, Since: at(since), Length: time.Duration(length) * time.Second}
	}
	unsure := func(l staleness.Outage) staleness.Outage {
		l.StartUnknown = true
		return l
	}
	ended := func(l staleness.Outage, when int) staleness.Outage {
		l.Ended = at(when)
		return l
	}
	for name, tc := range map[string]struct {
		last staleness.Outage
		e    staleness.Evidence
		want staleness.Outage
	}{
		"all is well": {e: staleness.Evidence{Node: node(ready, -90), Agents: agents(up)}},
		"first look at a healthy node": {
			last: staleness.Outage{Cause: staleness.NotChecked}, e: staleness.Evidence{Node: node(ready, -90), Agents: agents(up)},
		},
		"first look at a lost node": {
			last: staleness.Outage{Cause: staleness.NotChecked}, e: staleness.Evidence{Node: node(unknown, -60)}, want: of(staleness.NodeNotReady, -60, 60),
		},
		"node without a condition":     {e: staleness.Evidence{Node: &staleness.Node{}, Agents: agents(up)}},
		"node is not ready":            {e: staleness.Evidence{Node: node(notReady, -30), Agents: agents(up)}, want: of(staleness.NodeNotReady, -30, 30)},
		"agent failed before the node": {e: staleness.Evidence{Node: node(unknown, -30), Agents: agents(down)}, want: of(staleness.NodeNotReady, -40, 40)},
		"time of the condition is missing": {
			e: staleness.Evidence{Node: &staleness.Node{Ready: notReady}, Agents: agents(up)}, want: unsure(of(staleness.NodeNotReady, 0, 0)),
		},
		"time of another clock": {e: staleness.Evidence{Node: node(notReady, 50), Agents: agents(up)}, want: of(staleness.NodeNotReady, 0, 0)},
		"agent is not ready":    {e: staleness.Evidence{Node: node(ready, -90), Agents: agents(down)}, want: of(staleness.AgentNotReady, -40, 40)},
		"agent is leaving":      {e: staleness.Evidence{Node: node(ready, -90), Agents: agents(leaving)}, want: of(staleness.AgentNotReady, -5, 5)},
		"agent is replaced": {
			e: staleness.Evidence{Node: node(ready, -90), Agents: agents(leaving, down)}, want: of(staleness.AgentNotReady, -5, 5),
		},
		"new agent is ready": {e: staleness.Evidence{Node: node(ready, -90), Agents: agents(leaving, up)}},
		"failed agent is deleted": {
			e:    staleness.Evidence{Node: node(ready, -90), Agents: agents(staleness.Agent{Since: at(-40), Deleted: at(-3)})},
			want: of(staleness.AgentNotReady, -40, 40),
		},
		"no agent": {e: staleness.Evidence{Node: node(ready, -90)}, want: unsure(of(staleness.AgentGone, 0, 0))},
		"no agent for a while": {
			last: unsure(of(staleness.AgentGone, -20, 5)), e: staleness.Evidence{Node: node(ready, -90)}, want: unsure(of(staleness.AgentGone, -20, 20)),
		},
		"agent is created again and again": {
			last: unsure(of(staleness.AgentGone, -60, 5)), e: staleness.Evidence{Node: node(ready, -90), Agents: agents(down)},
			want: unsure(of(staleness.AgentNotReady, -60, 60)),
		},
		"no agent expected": {e: staleness.Evidence{Node: &staleness.Node{Ready: ready, Agentless: true}}},
		"virtual node is not ready": {
			e: staleness.Evidence{Node: &staleness.Node{Ready: notReady, Since: at(-30), Agentless: true}}, want: of(staleness.NodeNotReady, -30, 30),
		},
		"node is gone":                    {e: staleness.Evidence{}, want: unsure(of(staleness.NodeGone, 0, 0))},
		"node is gone, agent was deleted": {e: staleness.Evidence{Agents: agents(leaving)}, want: of(staleness.NodeGone, -5, 5)},
		"lost node is deleted":            {last: of(staleness.NodeNotReady, -30, 29), e: staleness.Evidence{}, want: of(staleness.NodeGone, -30, 30)},
		"lost node is deleted, restart":   {e: staleness.Evidence{Agents: agents(down)}, want: of(staleness.NodeGone, -40, 40)},

		"just ended": {
			last: of(staleness.NodeNotReady, -30, 29), e: staleness.Evidence{Node: node(ready, 0), Agents: agents(up)},
			want: ended(of(staleness.NodeNotReady, -30, 29), 0),
		},
		"ended": {
			last: ended(of(staleness.NodeNotReady, -30, 15), -9), e: staleness.Evidence{Node: node(ready, -9), Agents: agents(up)},
			want: ended(of(staleness.NodeNotReady, -30, 15), -9),
		},
		"over": {
			last: ended(of(staleness.NodeNotReady, -30, 15), -10), e: staleness.Evidence{Node: node(ready, -9), Agents: agents(up)},
		},
		"again soon": {
			last: ended(of(staleness.NodeNotReady, -30, 15), -9), e: staleness.Evidence{Node: node(notReady, -1), Agents: agents(up)},
			want: of(staleness.NodeNotReady, -15, 15),
		},
		"clock set back while it lasts": {
			last: of(staleness.NodeNotReady, 3000, 60), e: staleness.Evidence{Node: node(notReady, 3000), Agents: agents(up)},
			want: of(staleness.NodeNotReady, 0, 60),
		},
		"clock set back after the end": {
			last: ended(of(staleness.NodeNotReady, 3000, 60), 3060), e: staleness.Evidence{Node: node(ready, 3060), Agents: agents(up)},
			want: ended(of(staleness.NodeNotReady, 3000, 60), 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "outage", tc.want, staleness.Decide(tc.last, tc.e, at(0)))
		})
	}
}

func TestNextCheck(t *testing.T) {
	const second = time.Second
	running := staleness.Outage{Cause: staleness.NodeNotReady, Since: at(-20), Length: 20 * second}
	for name, tc := range map[string]struct {
		outage staleness.Outage
		want   time.Duration
	}{
		"current":     {},
		"not checked": {outage: staleness.Outage{Cause: staleness.NotChecked}},
		"next time":   {outage: running, want: 10 * second},
		"all stale":   {outage: staleness.Outage{Cause: staleness.NodeGone, Length: 60 * second}},
		"ended":       {outage: staleness.Outage{Cause: staleness.NodeGone, Length: 60 * second, Ended: at(-3)}, want: 7 * second},
	} {
		expect.Equal(t, name+": next check after", tc.want, tc.outage.NextCheck([]time.Duration{60 * second, 10 * second, 30 * second}, at(0)))
	}
	if running.MakesStale(21*second) || !running.MakesStale(20*second) || (staleness.Outage{Cause: staleness.NotChecked}).MakesStale(0) {
		t.Error("wrong answer of MakesStale")
	}
}

// history plays random failures of a node, of its agent and of the manager, and steps of the manager's
// clock. It knows how long the failures last.
type history struct {
	*rand.Rand
	// now is the true time. step is how far the clock of the manager differs from it.
	now, step time.Duration
	evidence  staleness.Evidence
	// good is since when the states are current again.
	good time.Duration
	last staleness.Outage
	// stepped is whether the clock has been set in this outage.
	stepped bool
}

func (h *history) time() time.Time { return start.Add(h.now) }

func (h *history) current() bool {
	return h.evidence.Node != nil && h.evidence.Node.Ready == corev1.ConditionTrue && len(h.evidence.Agents) == 1 && h.evidence.Agents[0].Ready
}

// bad returns since when one of the failures that last now has lasted.
func (h *history) bad() time.Duration {
	since := h.time()
	if h.evidence.Node.Ready != corev1.ConditionTrue {
		since = h.evidence.Node.Since
	}
	if agent := h.evidence.Agents[0]; !agent.Ready && agent.Since.Before(since) {
		since = agent.Since
	}
	return since.Sub(start)
}

// fail changes the node or the agent, as the kubelet and the controllers of Kubernetes do.
func (h *history) fail() {
	was := h.current()
	flip := func(status corev1.ConditionStatus) corev1.ConditionStatus {
		if status == corev1.ConditionTrue {
			return corev1.ConditionUnknown
		}
		return corev1.ConditionTrue
	}
	switch {
	case h.IntN(2) == 0:
		h.evidence.Node = &staleness.Node{Ready: flip(h.evidence.Node.Ready), Since: h.time()}
	default:
		h.evidence.Agents = []staleness.Agent{{Ready: !h.evidence.Agents[0].Ready, Since: h.time()}}
	}
	switch is := h.current(); {
	case was && !is && h.now-h.good >= staleness.Grace:
		h.stepped = false
	case !was && is:
		h.good = h.now
	}
}

// TestOutagesAreAsLongAsTheFailure plays histories. Restarts of the manager do not change when states
// become stale, as long as its clock is right; a clock that is set back does not make stale states current.
func TestOutagesAreAsLongAsTheFailure(t *testing.T) {
	const after = 20 * time.Second
	for seed := range uint64(500) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 0)), good: -time.Hour}
		h.evidence = staleness.Evidence{Node: node(corev1.ConditionTrue, -1000), Agents: []staleness.Agent{{Ready: true, Since: at(-1000)}}}
		for turn := range 200 {
			h.now += time.Duration(h.IntN(4000)) * time.Millisecond
			restarted, before := false, h.last
			switch h.IntN(12) {
			case 0, 1:
				h.fail()
			case 2:
				h.last, restarted = staleness.Outage{Cause: staleness.NotChecked}, true
			case 3:
				h.step += time.Duration(h.IntN(7200)-3600) * time.Second
				h.stepped = true
			}
			h.last = staleness.Decide(h.last, h.evidence, h.time().Add(h.step))
			where := fmt.Sprintf("seed %d, turn %d, restarted %t, %+v after %+v", seed, turn, restarted, h.last, before)
			switch {
			case h.current() && h.now-h.good >= 2*staleness.Grace && h.step == 0 && h.last.Cause != "" && h.last.Ended.IsZero():
				t.Fatalf("%s: an outage lasts while the states are current", where)
			case h.current():
			case h.step == 0 && !h.stepped && h.now-h.bad() >= after && !h.last.MakesStale(after):
				t.Fatalf("%s: not stale %s after the failure", where, h.now-h.bad())
			case !restarted && before.Cause != "" && before.Ended.IsZero() && h.last.Length < before.Length:
				t.Fatalf("%s: the outage got shorter", where)
			case h.last.Length < 0 || h.last.Since.After(h.time().Add(h.step)):
				t.Fatalf("%s: the outage begins in the future", where)
			}
		}
	}
}
