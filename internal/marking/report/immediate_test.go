// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
)

// node plays the messages of a node, in steps of the interval of reports.
type node struct {
	testing.TB
	plan   report.Plan
	states report.States
	record report.Record
	now    float64
	next   time.Time
	// changed are the pods whose messages have changed since the last step, and since when those of pods
	// are not reported yet.
	changed map[string]bool
	since   map[string]float64
	// reports counts the reports of changed messages, and waited is the longest time until one, by
	// namespace. writes counts the slices.
	reports map[string]int
	waited  map[string]float64
	writes  int
}

// newNode returns a node with pods of one probe in each namespace, which have reported a state.
func newNode(t testing.TB, updates v1alpha1.MessageUpdates, pods map[string]int) *node {
	n := &node{TB: t, states: report.States{}, changed: map[string]bool{}, since: map[string]float64{}, reports: map[string]int{}, waited: map[string]float64{}}
	n.plan.Generation = 1
	for namespace, count := range pods {
		for i := range count {
			pod := podPlan(fmt.Sprint(namespace, "-", i), "m#p")
			pod.Namespace, pod.Probes[0].MessageUpdates = namespace, updates
			n.plan.Pods = append(n.plan.Pods, pod)
			n.states[key(t, pod.Name, "m#p")] = known(succeeded, "before", 0, 0)
		}
	}
	n.record, _ = wrote(at(0), n.plan, report.Record{}, n.states)
	return n
}

// say changes the messages of the first pods of a namespace.
func (n *node) say(namespace string, pods int, message string) {
	for i := range pods {
		n.sayOne(fmt.Sprint(namespace, "-", i), message)
	}
}

func (n *node) sayOne(pod, message string) {
	k := key(n, pod, "m#p")
	state := n.states[k]
	state.Message = message
	n.states[k], n.changed["uid-"+pod] = state, true
	if _, waits := n.since["uid-"+pod]; !waits {
		n.since["uid-"+pod] = n.now
	}
}

// step decides and writes if something has changed or is due, and lets the time of an interval pass.
func (n *node) step() {
	now := at(n.now)
	if len(n.changed) > 0 || !n.next.IsZero() && !now.Before(n.next) {
		decision := report.Decide(now, n.plan, n.record, n.states, n.changed)
		n.record, n.next, n.changed = decision.Record, decision.Next, map[string]bool{}
		n.writes += len(decision.Writes)
		for _, w := range decision.Writes {
			n.record = n.record.Wrote(now, w)
			for i := range w.Pods {
				pod := &w.Pods[i]
				since, waits := n.since[pod.UID]
				if waits && pod.Probes[0].Message == n.states[key(n, pod.Name, "m#p")].Message {
					n.reports[pod.Namespace]++
					n.waited[pod.Namespace] = max(n.waited[pod.Namespace], n.now-since)
					delete(n.since, pod.UID)
				}
			}
		}
	}
	n.now += 0.1
}

func TestImmediateMessages(t *testing.T) {
	cases := map[string]struct {
		pods map[string]int
		// say changes messages in the tenth of a second.
		say     func(n *node, tenth int)
		seconds int
		// least and most limit the reports by namespace, and wait the longest time until one.
		least, most map[string]int
		wait        map[string]float64
	}{
		"each change of a pod that changes every second": {
			pods: map[string]int{"a": 1},
			say: func(n *node, tenth int) {
				if tenth%10 == 0 {
					n.say("a", 1, fmt.Sprint(tenth))
				}
			},
			seconds: 30, least: map[string]int{"a": 30}, most: map[string]int{"a": 30}, wait: map[string]float64{"a": 0},
		},
		"all pods at once": {
			pods: map[string]int{"a": 110},
			say: func(n *node, tenth int) {
				if tenth == 0 {
					n.say("a", 110, "x")
				}
			},
			seconds: 1, least: map[string]int{"a": 110}, most: map[string]int{"a": 110}, wait: map[string]float64{"a": 0},
		},
		"all pods all the time, and then none": {
			pods: map[string]int{"a": 110},
			say: func(n *node, tenth int) {
				if tenth < 350 {
					n.say("a", 110, fmt.Sprint(tenth))
				}
			},
			// Each pod waits for one token of each of the others.
			seconds: 50, least: map[string]int{"a": 450}, most: map[string]int{"a": 110 + 500}, wait: map[string]float64{"a": 11.1},
		},
		"a pod of another namespace, and one of the same": {
			pods: map[string]int{"noisy": 110, "quiet": 2},
			say: func(n *node, tenth int) {
				n.say("noisy", 109, fmt.Sprint(tenth))
				if tenth%100 == 50 {
					n.say("quiet", 2, fmt.Sprint(tenth))
				}
			},
			seconds: 30, least: map[string]int{"noisy": 300, "quiet": 6}, most: map[string]int{"quiet": 6},
			wait: map[string]float64{"quiet": 0.4},
		},
		"two namespaces that need more than their share": {
			pods: map[string]int{"large": 100, "small": 10},
			say: func(n *node, tenth int) {
				n.say("large", 100, fmt.Sprint(tenth))
				n.say("small", 10, fmt.Sprint(tenth))
			},
			// Ten pods of a namespace that gets half of the rate.
			seconds: 50, least: map[string]int{"large": 250, "small": 250}, most: map[string]int{"large": 360, "small": 270},
			wait: map[string]float64{"large": 20.1, "small": 2.1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, v1alpha1.MessageUpdatesImmediate, tc.pods)
			n.now = 1
			for tenth := range 10 * tc.seconds {
				tc.say(n, tenth)
				n.step()
			}
			for namespace, least := range tc.least {
				if got := n.reports[namespace]; got < least {
					t.Errorf("%d reports of namespace %s, want at least %d", got, namespace, least)
				}
			}
			for namespace, most := range tc.most {
				if got := n.reports[namespace]; got > most {
					t.Errorf("%d reports of namespace %s, want at most %d", got, namespace, most)
				}
			}
			for namespace, wait := range tc.wait {
				if got := n.waited[namespace]; got > wait+0.01 {
					t.Errorf("a message of namespace %s waits for %.1f s, want at most %.1f s", namespace, got, wait)
				}
			}
			if name == "all pods all the time, and then none" && len(n.since) > 0 {
				t.Errorf("the newest messages of %d pods are not reported", len(n.since))
			}
		})
	}
}

// TestTransitionsDoNotWaitForMessages checks that a transition is reported at once although the node
// has no token for messages, and takes none.
func TestTransitionsDoNotWaitForMessages(t *testing.T) {
	n := newNode(t, v1alpha1.MessageUpdatesImmediate, map[string]int{"a": 111})
	n.say("a", 111, "x")
	n.step()
	if len(n.since) != 1 {
		t.Fatalf("%d messages wait, want one", len(n.since))
	}
	for uid := range n.since {
		k := key(t, uid[len("uid-"):], "m#p")
		due := n.record.MessageDue(n.plan, k, n.states[k], "before")
		if !due.Equal(n.next) || !due.Equal(at(0.1)) {
			t.Errorf("the message is due at %s, and the next decision at %s, want both after a tenth of a second", due, n.next)
		}
		n.states[k] = known(failed, "x", 0.05, 0.05)
		decision := report.Decide(at(0.05), n.plan, n.record, n.states, map[string]bool{uid: true})
		if len(decision.Writes) != 1 || !decision.Next.IsZero() {
			t.Errorf("%d writes, next %s, want the transition and nothing later", len(decision.Writes), decision.Next)
		}
	}
}

// TestEditOfMessageUpdates checks that a message that waits is reported when the plan says Immediate,
// that the limit applies again after Limited, and that the state stays.
func TestEditOfMessageUpdates(t *testing.T) {
	n := newNode(t, "", map[string]int{"a": 1})
	n.now = 1
	for i := range 10 {
		n.say("a", 1, fmt.Sprint(i))
		n.step()
	}
	plan := func(updates v1alpha1.MessageUpdates) {
		pod := n.plan.Pods[0]
		pod.Probes = []v1alpha1.ContainerProbe{pod.Probes[0]}
		pod.Probes[0].MessageUpdates = updates
		n.plan = report.Plan{Generation: n.plan.Generation + 1, Pods: []v1alpha1.PodProbe{pod}}
	}
	if n.reports["a"] != 3 || len(n.since) != 1 {
		t.Fatalf("%d messages are reported, want three", n.reports["a"])
	}
	plan(v1alpha1.MessageUpdatesImmediate)
	decision := report.Decide(at(n.now), n.plan, n.record, n.states, nil)
	if len(decision.Writes) != 1 {
		t.Fatalf("%d writes after the edit, want one", len(decision.Writes))
	}
	entry := decision.Writes[0].Pods[0].Probes[0]
	if entry.Message != "9" || entry.State != succeeded || !entry.LastTransitionTime.Time.Equal(at(0)) {
		t.Errorf("reported %+v, want the newest message with the state and its time", entry)
	}
	n.record = decision.Record.Wrote(at(n.now), decision.Writes[0])
	for _, later := range []v1alpha1.MessageUpdates{v1alpha1.MessageUpdatesLimited, "", "Other"} {
		plan(later)
		n.say("a", 1, "later")
		decision = report.Decide(at(n.now), n.plan, n.record, n.states, nil)
		if len(decision.Writes) > 0 || decision.Next.IsZero() {
			t.Errorf("messageUpdates %q: %d writes, next %s, want that the message waits", later, len(decision.Writes), decision.Next)
		}
	}
}

// TestLostResponseTakesOneToken checks that a message whose write may have been lost is written again
// before those of others, without another token.
func TestLostResponseTakesOneToken(t *testing.T) {
	n := newNode(t, v1alpha1.MessageUpdatesImmediate, map[string]int{"a": 200})
	n.say("a", 200, "x")
	lost := report.Decide(at(0), n.plan, n.record, n.states, n.changed)
	again := report.Decide(at(0), n.plan, lost.Record, n.states, map[string]bool{})
	count := func(d report.Decision) (reported int) {
		for _, w := range d.Writes {
			for i := range w.Pods {
				if w.Pods[i].Probes[0].Message == "x" {
					reported++
				}
			}
		}
		return reported
	}
	if first, second := count(lost), count(again); first != 110 || second != 110 || len(again.Writes) != len(lost.Writes) {
		t.Errorf("%d messages, then %d in %d writes, want 110 in the same %d writes", first, second, len(again.Writes), len(lost.Writes))
	}
}
