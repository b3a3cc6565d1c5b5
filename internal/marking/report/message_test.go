// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestMessageTokens plays the states of probe m#p, and checks when which message is reported.
func TestMessageTokens(t *testing.T) {
	// change is a state or message from a time in seconds on.
	type change struct {
		at      float64
		state   v1alpha1.ProbeState
		message string
	}
	counter := func(seconds int) (changes []change) {
		for i := range seconds {
			changes = append(changes, change{float64(i), succeeded, fmt.Sprint("n", i)})
		}
		return changes
	}
	cases := map[string]struct {
		changes []change
		want    []string
	}{
		"newest message when there is a token": {
			changes: []change{
				{0, succeeded, "a"}, {1, succeeded, "b"}, {2, succeeded, "c"}, {3, succeeded, "d"},
				{4, succeeded, "e"}, {20, succeeded, "f"}, {30, succeeded, "g"},
			},
			want: []string{"0s a", "1s b", "2s c", "3s d", "1m1s g"},
		},
		"message changes back while it waits": {
			changes: []change{
				{0, succeeded, "a"}, {1, succeeded, "b"}, {2, succeeded, "c"}, {3, succeeded, "d"},
				{4, succeeded, "e"}, {5, succeeded, "d"},
			},
			want: []string{"0s a", "1s b", "2s c", "3s d"},
		},
		"transition without a token": {
			changes: []change{
				{0, succeeded, "a"}, {1, succeeded, "b"}, {2, succeeded, "c"}, {3, succeeded, "d"},
				{4, failed, "e"}, {5, failed, "f"}, {6, succeeded, "g"},
			},
			want: []string{"0s a", "1s b", "2s c", "3s d", "4s e", "6s g"},
		},
		"transitions take no token": {
			changes: []change{
				{0, succeeded, "a"}, {1, failed, "b"}, {2, succeeded, "c"}, {3, failed, "d"}, {4, succeeded, "e"},
				{5, succeeded, "f"}, {6, succeeded, "g"}, {7, succeeded, "h"}, {8, succeeded, "i"},
			},
			want: []string{"0s a", "1s b", "2s c", "3s d", "4s e", "5s f", "6s g", "7s h", "1m5s i"},
		},
		"full again after three minutes": {
			changes: []change{
				{0, succeeded, "a"}, {1, succeeded, "b"}, {2, succeeded, "c"}, {3, succeeded, "d"},
				{200, succeeded, "e"}, {201, succeeded, "f"}, {202, succeeded, "g"}, {203, succeeded, "h"},
			},
			want: []string{"0s a", "1s b", "2s c", "3s d", "3m20s e", "3m21s f", "3m22s g", "4m20s h"},
		},
		"counter": {
			changes: counter(310),
			want: []string{
				"0s n0", "1s n1", "2s n2", "3s n3", "1m1s n61", "2m1s n121", "3m1s n181", "4m1s n241", "5m1s n301",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, states := report.Record{}, report.States{}
			var got []string
			var last, next time.Time
			for now := at(0); !now.After(at(310)); now = now.Add(time.Second) {
				changed := false
				for len(tc.changes) > 0 && !at(tc.changes[0].at).After(now) {
					c := tc.changes[0]
					tc.changes, changed = tc.changes[1:], true
					if states[key(t, "a", "m#p")].State != c.state {
						last = now
					}
					states[key(t, "a", "m#p")] = known(c.state, c.message, c.at, last.Sub(at(0)).Seconds())
				}
				if !changed && (next.IsZero() || now.Before(next)) {
					continue
				}
				var decision report.Decision
				record, decision = wrote(now, onePlan(), record, states)
				next = decision.Next
				for _, w := range decision.Writes {
					got = append(got, fmt.Sprint(now.Sub(at(0)), " ", w.Pods[0].Probes[0].Message))
				}
			}
			expect.Equal(t, "reports", tc.want, got)
		})
	}
}

// TestAllowedValueIsReportedAtOnce checks that a change of an allowed value does not wait for a token,
// and that other changes do.
func TestAllowedValueIsReportedAtOnce(t *testing.T) {
	plan := onePlan()
	plan.Pods = slices.Clone(plan.Pods)
	plan.Pods[0].Probes = slices.Clone(plan.Pods[0].Probes)
	plan.Pods[0].Probes[0].Values = []v1alpha1.WatchedValue{{State: succeeded, AllowedValues: []string{"primary", "secondary"}}}
	record, states := report.Record{}, report.States{}
	var got []string
	for i, message := range []string{"primary", "x1", "x2", "x3", "x4", "primary", "secondary", "x5", "x6", "primary\n1", "primary\n2"} {
		states[key(t, "a", "m#p")] = known(succeeded, message, float64(i), 0)
		var decision report.Decision
		record, decision = wrote(at(float64(i)), plan, record, states)
		for _, w := range decision.Writes {
			got = append(got, w.Pods[0].Probes[0].Message)
		}
	}
	expect.Equal(t, "reports", []string{"primary", "x1", "x2", "x3", "primary", "secondary", "x5", "primary\n1"}, got)
	k := key(t, "a", "m#p")
	if due := record.MessageDue(plan, k, known(succeeded, "primary", 11, 0), "x"); !due.IsZero() {
		t.Errorf("an allowed value is due at %s, want at once", due)
	}
	if due := record.MessageDue(plan, k, known(succeeded, "y", 11, 0), "x"); !due.After(at(11)) {
		t.Errorf("another message is due at %s, want later", due)
	}
}

// TestMessageTokensOfEachProbe checks that a counter in one message does not delay another probe,
// and that reports of the counter do not contain the other's message.
func TestMessageTokensOfEachProbe(t *testing.T) {
	plan := report.Plan{Generation: 1, Pods: []v1alpha1.PodProbe{podPlan("a", "m#count", "m#p")}}
	record, states := report.Record{}, report.States{}
	count, other := key(t, "a", "m#count"), key(t, "a", "m#p")
	states[other] = known(succeeded, "before", 0, 0)
	for i := range 10 {
		now := at(float64(i))
		states[count] = known(succeeded, fmt.Sprint(i), 0, 0)
		var decision report.Decision
		record, decision = wrote(now, plan, record, states)
		expect.Equal(t, fmt.Sprintf("message %d: written", i), i < 4, len(decision.Writes) > 0)
	}
	states[other] = known(succeeded, "after", 10, 0)
	decision := report.Decide(at(10), plan, record, states, nil)
	want := []string{"3", "after"}
	var got []string
	for _, w := range decision.Writes {
		for _, e := range w.Pods[0].Probes {
			got = append(got, e.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || !decision.Next.Equal(at(61)) {
		t.Errorf("next %s, messages (-want +got):\n%s", decision.Next, diff)
	}
}

// TestMessageTokensAfterClockWasSetBack covers an agent that restarts after the wall clock was set
// back: the reported transition is in the future. A counter still costs one report per minute.
func TestMessageTokensAfterClockWasSetBack(t *testing.T) {
	record := report.Read(stored(podReport("a", entry("m#p", succeeded, "before", 3600, 3600))), nil)
	states, writes := report.Restore(onePlan(), record), 0
	for i := range 300 {
		now, state := at(float64(i)), states[key(t, "a", "m#p")]
		state.Message, state.LastProbe = fmt.Sprint(i), now
		states[key(t, "a", "m#p")] = state
		var decision report.Decision
		record, decision = wrote(now, onePlan(), record, states)
		writes += len(decision.Writes)
	}
	expect.Equal(t, "reports in 5 minutes", 7, writes)
}
