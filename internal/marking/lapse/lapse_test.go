// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package lapse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/marking/lapse"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// at returns a time in seconds after the start of the test.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func node(ready corev1.ConditionStatus, since int) *lapse.Node {
	return &lapse.Node{Ready: ready, Since: at(since)}
}

func TestNext(t *testing.T) {
	const ready, notReady, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	up, down := lapse.Agent{Ready: true, Since: at(-100)}, lapse.Agent{Since: at(-40)}
	leaving := lapse.Agent{Ready: true, Since: at(-100), Deleted: at(-5)}
	agents := func(all ...lapse.Agent) []lapse.Agent { return all }
	of := func(cause lapse.Cause, since, length int) lapse.Lapse {
		return lapse.Lapse{Cause: cause, Since: at(since), Length: time.Duration(length) * time.Second}
	}
	unsure := func(l lapse.Lapse) lapse.Lapse {
		l.Unsure = true
		return l
	}
	ended := func(l lapse.Lapse, when int) lapse.Lapse {
		l.Ended = at(when)
		return l
	}
	for name, tc := range map[string]struct {
		last lapse.Lapse
		e    lapse.Evidence
		want lapse.Lapse
	}{
		"all is well":                      {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(up)}},
		"first look at a healthy node":     {last: lapse.Lapse{Cause: lapse.NotChecked}, e: lapse.Evidence{Node: node(ready, -90), Agents: agents(up)}},
		"first look at a lost node":        {last: lapse.Lapse{Cause: lapse.NotChecked}, e: lapse.Evidence{Node: node(unknown, -60)}, want: of(lapse.NodeNotReady, -60, 60)},
		"node without a condition":         {e: lapse.Evidence{Node: &lapse.Node{}, Agents: agents(up)}},
		"node is not ready":                {e: lapse.Evidence{Node: node(notReady, -30), Agents: agents(up)}, want: of(lapse.NodeNotReady, -30, 30)},
		"agent failed before the node":     {e: lapse.Evidence{Node: node(unknown, -30), Agents: agents(down)}, want: of(lapse.NodeNotReady, -40, 40)},
		"time of the condition is missing": {e: lapse.Evidence{Node: &lapse.Node{Ready: notReady}, Agents: agents(up)}, want: unsure(of(lapse.NodeNotReady, 0, 0))},
		"time of another clock":            {e: lapse.Evidence{Node: node(notReady, 50), Agents: agents(up)}, want: of(lapse.NodeNotReady, 0, 0)},
		"agent is not ready":               {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(down)}, want: of(lapse.AgentNotReady, -40, 40)},
		"agent is leaving":                 {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(leaving)}, want: of(lapse.AgentNotReady, -5, 5)},
		"agent is replaced":                {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(leaving, down)}, want: of(lapse.AgentNotReady, -5, 5)},
		"new agent is ready":               {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(leaving, up)}},
		"failed agent is deleted":          {e: lapse.Evidence{Node: node(ready, -90), Agents: agents(lapse.Agent{Since: at(-40), Deleted: at(-3)})}, want: of(lapse.AgentNotReady, -40, 40)},
		"no agent":                         {e: lapse.Evidence{Node: node(ready, -90)}, want: unsure(of(lapse.AgentGone, 0, 0))},
		"no agent for a while":             {last: unsure(of(lapse.AgentGone, -20, 5)), e: lapse.Evidence{Node: node(ready, -90)}, want: unsure(of(lapse.AgentGone, -20, 20))},
		"agent is created again and again": {last: unsure(of(lapse.AgentGone, -60, 5)), e: lapse.Evidence{Node: node(ready, -90), Agents: agents(down)}, want: unsure(of(lapse.AgentNotReady, -60, 60))},
		"no agent expected":                {e: lapse.Evidence{Node: &lapse.Node{Ready: ready, Agentless: true}}},
		"virtual node is not ready":        {e: lapse.Evidence{Node: &lapse.Node{Ready: notReady, Since: at(-30), Agentless: true}}, want: of(lapse.NodeNotReady, -30, 30)},
		"node is gone":                     {e: lapse.Evidence{}, want: unsure(of(lapse.NodeGone, 0, 0))},
		"node is gone, agent was deleted":  {e: lapse.Evidence{Agents: agents(leaving)}, want: of(lapse.NodeGone, -5, 5)},
		"lost node is deleted":             {last: of(lapse.NodeNotReady, -30, 29), e: lapse.Evidence{}, want: of(lapse.NodeGone, -30, 30)},
		"lost node is deleted, restart":    {e: lapse.Evidence{Agents: agents(down)}, want: of(lapse.NodeGone, -40, 40)},

		"just ended":                    {last: of(lapse.NodeNotReady, -30, 29), e: lapse.Evidence{Node: node(ready, 0), Agents: agents(up)}, want: ended(of(lapse.NodeNotReady, -30, 29), 0)},
		"ended":                         {last: ended(of(lapse.NodeNotReady, -30, 15), -9), e: lapse.Evidence{Node: node(ready, -9), Agents: agents(up)}, want: ended(of(lapse.NodeNotReady, -30, 15), -9)},
		"over":                          {last: ended(of(lapse.NodeNotReady, -30, 15), -10), e: lapse.Evidence{Node: node(ready, -9), Agents: agents(up)}},
		"again soon":                    {last: ended(of(lapse.NodeNotReady, -30, 15), -9), e: lapse.Evidence{Node: node(notReady, -1), Agents: agents(up)}, want: of(lapse.NodeNotReady, -15, 15)},
		"clock set back while it lasts": {last: of(lapse.NodeNotReady, 3000, 60), e: lapse.Evidence{Node: node(notReady, 3000), Agents: agents(up)}, want: of(lapse.NodeNotReady, 0, 60)},
		"clock set back after the end":  {last: ended(of(lapse.NodeNotReady, 3000, 60), 3060), e: lapse.Evidence{Node: node(ready, 3060), Agents: agents(up)}, want: ended(of(lapse.NodeNotReady, 3000, 60), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lapse.Next(tc.last, tc.e, at(0))); diff != "" {
				t.Errorf("lapse (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgain(t *testing.T) {
	const second = time.Second
	running := lapse.Lapse{Cause: lapse.NodeNotReady, Since: at(-20), Length: 20 * second}
	for name, tc := range map[string]struct {
		lapse lapse.Lapse
		want  time.Duration
	}{
		"current":     {},
		"not checked": {lapse: lapse.Lapse{Cause: lapse.NotChecked}},
		"next time":   {lapse: running, want: 10 * second},
		"all stale":   {lapse: lapse.Lapse{Cause: lapse.NodeGone, Length: 60 * second}},
		"ended":       {lapse: lapse.Lapse{Cause: lapse.NodeGone, Length: 60 * second, Ended: at(-3)}, want: 7 * second},
	} {
		if got := tc.lapse.Again([]time.Duration{60 * second, 10 * second, 30 * second}, at(0)); got != tc.want {
			t.Errorf("%s: again after %s, want %s", name, got, tc.want)
		}
	}
	if running.Reaches(21*second) || !running.Reaches(20*second) || (lapse.Lapse{Cause: lapse.NotChecked}).Reaches(0) {
		t.Error("wrong answer of Reaches")
	}
}

// history plays random failures of a node, of its agent and of the manager, and steps of the manager's
// clock. It knows how long the failures last.
type history struct {
	*rand.Rand
	// now is the true time. step is how far the clock of the manager differs from it.
	now, step time.Duration
	evidence  lapse.Evidence
	// good is since when the states are current again.
	good time.Duration
	last lapse.Lapse
	// stepped is whether the clock has been set in this lapse.
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
		h.evidence.Node = &lapse.Node{Ready: flip(h.evidence.Node.Ready), Since: h.time()}
	default:
		h.evidence.Agents = []lapse.Agent{{Ready: !h.evidence.Agents[0].Ready, Since: h.time()}}
	}
	switch is := h.current(); {
	case was && !is && h.now-h.good >= lapse.Hold:
		h.stepped = false
	case !was && is:
		h.good = h.now
	}
}

// TestLapsesAreAsLongAsTheFailure plays histories. Restarts of the manager do not change when states
// become stale, as long as its clock is right; a clock that is set back does not make stale states current.
func TestLapsesAreAsLongAsTheFailure(t *testing.T) {
	const after = 20 * time.Second
	for seed := range uint64(500) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 0)), good: -time.Hour}
		h.evidence = lapse.Evidence{Node: node(corev1.ConditionTrue, -1000), Agents: []lapse.Agent{{Ready: true, Since: at(-1000)}}}
		for turn := range 200 {
			h.now += time.Duration(h.IntN(4000)) * time.Millisecond
			restarted, before := false, h.last
			switch h.IntN(12) {
			case 0, 1:
				h.fail()
			case 2:
				h.last, restarted = lapse.Lapse{Cause: lapse.NotChecked}, true
			case 3:
				h.step += time.Duration(h.IntN(7200)-3600) * time.Second
				h.stepped = true
			}
			h.last = lapse.Next(h.last, h.evidence, h.time().Add(h.step))
			where := fmt.Sprintf("seed %d, turn %d, restarted %t, %+v after %+v", seed, turn, restarted, h.last, before)
			switch {
			case h.current() && h.now-h.good >= 2*lapse.Hold && h.step == 0 && h.last.Cause != "" && h.last.Ended.IsZero():
				t.Fatalf("%s: a lapse lasts while the states are current", where)
			case h.current():
			case h.step == 0 && !h.stepped && h.now-h.bad() >= after && !h.last.Reaches(after):
				t.Fatalf("%s: not stale %s after the failure", where, h.now-h.bad())
			case !restarted && before.Cause != "" && before.Ended.IsZero() && h.last.Length < before.Length:
				t.Fatalf("%s: the lapse got shorter", where)
			case h.last.Length < 0 || h.last.Since.After(h.time().Add(h.step)):
				t.Fatalf("%s: the lapse begins in the future", where)
			}
		}
	}
}
