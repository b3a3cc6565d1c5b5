// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/internal/marking/report"
)

// TestPodsThatLeaveThePlan decides while pod b is not planned: at once, and when Next is.
func TestPodsThatLeaveThePlan(t *testing.T) {
	running := map[string]bool{"uid-b": true}
	cases := map[string]struct {
		// running are the pods with running containers, and later those after half of LeftDelay.
		running, later map[string]bool
		// returns reports whether b is planned again after half of LeftDelay.
		returns bool
		want    []string
	}{
		"deleted":                         {},
		"terminates within the delay":     {running: running},
		"still runs":                      {running: running, later: running, want: []string{"0 a"}},
		"still runs and is planned again": {running: running, later: running, returns: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			states := report.States{}
			for _, pod := range []string{"a", "b"} {
				states[key(t, pod, "m#p")] = known(succeeded, "ok", 0, 0)
			}
			ledger, _ := wrote(at(0), planOf("a", "b"), report.Ledger{}, states)
			plan := planOf("a")
			plan.Running = tc.running
			ledger, d := wrote(at(1), plan, ledger, states)
			if len(d.Writes) > 0 || d.Next.IsZero() != (tc.running == nil) {
				t.Fatalf("writes %v, next decision at %v", summary(d.Writes), d.Next)
			}
			if tc.returns {
				plan = planOf("a", "b")
			}
			plan.Running = tc.later
			ledger, d = wrote(at(1).Add(report.LeftDelay/2), plan, ledger, states)
			if len(d.Writes) > 0 {
				t.Fatalf("writes %v before the delay has passed", summary(d.Writes))
			}
			_, d = wrote(at(1).Add(report.LeftDelay+time.Second), plan, ledger, states)
			if diff := cmp.Diff(tc.want, summary(d.Writes)); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}
