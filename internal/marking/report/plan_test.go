// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// of returns a copy of the entry for the plan and the run of the container.
func of(e v1alpha1.ContainerProbeState, plan, container string) v1alpha1.ContainerProbeState {
	e.Plan, e.ContainerID = plan, container
	return e
}

// planWith returns the plan of one probe with the plan value.
func planWith(value string) report.Plan {
	plan := onePlan()
	plan.Pods[0].Probes[0].Plan = value
	return plan
}

// TestDecideRecreatedMarker checks that a state of a deleted marker is not reported for a new
// marker with the same name.
func TestDecideRecreatedMarker(t *testing.T) {
	base := entry("m#p", succeeded, "ok", 0, 0)
	inA := known(succeeded, "ok", 0, 0)
	inA.ContainerID = "a"
	cases := map[string]struct {
		reported, planned string
		state             *streak.State
		want              []v1alpha1.ContainerProbeState
		write             bool
	}{
		"same marker, not known":    {"1", "1", nil, nil, false},
		"same marker, same state":   {"1", "1", &inA, nil, false},
		"new marker, not known":     {"1", "2", nil, nil, true},
		"new marker, no result":     {"1", "2", &streak.State{}, nil, true},
		"new marker, same state":    {"1", "2", &inA, []v1alpha1.ContainerProbeState{of(base, "2", "a")}, true},
		"older agent, not known":    {"", "2", nil, nil, false},
		"older agent, same state":   {"", "2", &inA, nil, false},
		"older manager, same state": {"1", "", &inA, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ledger := report.Read(stored(podReport("a", of(base, tc.reported, "a"))), nil)
			states := report.States{}
			if tc.state != nil {
				states[key(t, "a", "m#p")] = *tc.state
			}
			var want []report.Write
			if tc.write {
				want = append(want, write(podReport("a", tc.want...)))
			}
			if diff := cmp.Diff(want, report.Decide(at(0), planWith(tc.planned), ledger, states, nil).Writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRestoreRecreatedMarker checks that an agent starts only from states of the planned markers.
func TestRestoreRecreatedMarker(t *testing.T) {
	cases := map[string]struct {
		reported, planned string
		want              bool
	}{
		"same marker":   {"1", "1", true},
		"new marker":    {"1", "2", false},
		"older agent":   {"", "2", true},
		"older manager": {"1", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reported := report.Read(stored(podReport("a", of(entry("m#p", succeeded, "ok", 5, 1), tc.reported, "c1"))), nil)
			want := report.States{}
			if tc.want {
				state := known(succeeded, "ok", 5, 1)
				state.ContainerID = "c1"
				want[key(t, "a", "m#p")] = state
			}
			if diff := cmp.Diff(want, report.Restore(planWith(tc.planned), reported)); diff != "" {
				t.Errorf("Restore() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventsOfRecreatedMarker checks that the first result of a new marker has an event even if
// it is equal to that of the old one.
func TestEventsOfRecreatedMarker(t *testing.T) {
	after := write(podReport("a", of(entry("m#p", succeeded, "ok", 9, 9), "2", "")))
	for before, want := range map[string]int{"1": 1, "2": 0, "": 0} {
		ledger := report.Read(stored(podReport("a", of(entry("m#p", succeeded, "ok", 0, 0), before, ""))), nil)
		if got := len(ledger.Events(planWith("2"), after)); got != want {
			t.Errorf("%d events after a report of plan %q, want %d", got, before, want)
		}
	}
}
