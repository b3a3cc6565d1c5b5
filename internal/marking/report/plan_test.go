// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

// of returns a copy of the entry for the plan and the run of the container.
func of(e v1alpha1.ContainerProbeState, plan, container string) v1alpha1.ContainerProbeState {
	e.Plan, e.ContainerID = plan, container
	return e
}

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
		state             *thresholds.State
		want              []v1alpha1.ContainerProbeState
		write             bool
	}{
		"same marker, not known":           {"1", "1", nil, nil, false},
		"same marker, same state":          {"1", "1", &inA, nil, false},
		"new marker, not known":            {"1", "2", nil, nil, true},
		"new marker, no result":            {"1", "2", &thresholds.State{}, nil, true},
		"new marker, same state":           {"1", "2", &inA, []v1alpha1.ContainerProbeState{of(base, "2", "a")}, true},
		"report of OpenKruise, not known":  {"", "2", nil, nil, false},
		"report of OpenKruise, same state": {"", "2", &inA, nil, false},
		"plan of OpenKruise, same state":   {"1", "", &inA, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record := report.Read(stored(podReport("a", of(base, tc.reported, "a"))), nil)
			states := report.States{}
			if tc.state != nil {
				states[key(t, "a", "m#p")] = *tc.state
			}
			var want []report.Write
			if tc.write {
				want = append(want, write(podReport("a", tc.want...)))
			}
			expect.Equal(t, "writes", want, report.Decide(at(0), planWith(tc.planned), record, states, nil).Writes)
		})
	}
}

// TestDecideOtherContainer checks that a state that applies to another container, or another run of it, is
// reported although nothing else changes: otherwise the next agent would start it again from Unknown.
func TestDecideOtherContainer(t *testing.T) {
	base := entry("m#p", succeeded, "ok", 0, 0)
	cases := map[string]struct {
		reported, current string
		write             bool
	}{
		"same":          {"a", "a", false},
		"other":         {"a", "b", true},
		"not known yet": {"a", "", true},
		"known now":     {"", "b", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := known(succeeded, "ok", 0, 0)
			state.ContainerID = tc.current
			var want []report.Write
			if tc.write {
				want = append(want, write(podReport("a", of(base, "1", tc.current))))
			}
			record := report.Read(stored(podReport("a", of(base, "1", tc.reported))), nil)
			got := report.Decide(at(0), planWith("1"), record, report.States{key(t, "a", "m#p"): state}, nil).Writes
			expect.Equal(t, "writes", want, got)
		})
	}
}

// TestRestoreRecreatedMarker checks that an agent starts only from states of the planned markers.
func TestRestoreRecreatedMarker(t *testing.T) {
	cases := map[string]struct {
		reported, planned string
		want              bool
	}{
		"same marker":          {"1", "1", true},
		"new marker":           {"1", "2", false},
		"report of OpenKruise": {"", "2", true},
		"plan of OpenKruise":   {"1", "", true},
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
			expect.Equal(t, "Restore()", want, report.Restore(planWith(tc.planned), reported))
		})
	}
}

// TestEventsOfRecreatedMarker checks that the first result of a new marker has an event even if
// it is equal to that of the old one.
func TestEventsOfRecreatedMarker(t *testing.T) {
	after := write(podReport("a", of(entry("m#p", succeeded, "ok", 9, 9), "2", "")))
	for before, want := range map[string]int{"1": 1, "2": 0, "": 0} {
		record := report.Read(stored(podReport("a", of(entry("m#p", succeeded, "ok", 0, 0), before, ""))), nil)
		expect.Equal(t, fmt.Sprintf("events after a report of plan %q", before), want, len(record.Events(planWith("2"), after)))
	}
}

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
			record, _ := wrote(at(0), planOf("a", "b"), report.Record{}, states)
			plan := planOf("a")
			plan.Running = tc.running
			record, d := wrote(at(1), plan, record, states)
			if len(d.Writes) > 0 || d.Next.IsZero() != (tc.running == nil) {
				t.Fatalf("writes %v, next decision at %v", summary(d.Writes), d.Next)
			}
			if tc.returns {
				plan = planOf("a", "b")
			}
			plan.Running = tc.later
			record, d = wrote(at(1).Add(report.LeftDelay/2), plan, record, states)
			if len(d.Writes) > 0 {
				t.Fatalf("writes %v before the delay has passed", summary(d.Writes))
			}
			_, d = wrote(at(1).Add(report.LeftDelay+time.Second), plan, record, states)
			expect.Equal(t, "writes", tc.want, summary(d.Writes))
		})
	}
}

func TestEvents(t *testing.T) {
	before := write(podReport("a", entry("m#p", succeeded, "ok", 0, 0)))
	read := report.Read(stored(before.Pods...), nil)
	after := func(state v1alpha1.ProbeState, message string) report.Write {
		return write(podReport("a", entry("m#p", state, message, 9, 9)))
	}
	cases := map[string]struct {
		record report.Record
		write  report.Write
		want   []string
	}{
		"first result":                    {report.Record{}, after(failed, "no"), []string{"Failed no"}},
		"transition":                      {read, after(failed, "no"), []string{"Failed no"}},
		"to Unknown":                      {read, after(unknown, ""), nil},
		"from Unknown":                    {read.Wrote(at(1), after(unknown, "")), after(succeeded, "ok"), []string{"Succeeded ok"}},
		"message only":                    {read, after(succeeded, "fine"), nil},
		"restored state":                  {read, before, nil},
		"state removed by another client": {read.Adopt(nil), after(succeeded, "ok"), nil},
		"transition after a foreign edit": {read.Adopt(nil), after(failed, "no"), []string{"Failed no"}},
		"takeover":                        {report.Read(nil, []v1alpha1.PodProbeStatus{podStatus(before.Pods[0])}), before, nil},
		"state removed":                   {read, write(podReport("a")), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.record.Events(onePlan(), tc.write) {
				if e.Pod.Name != "a" || e.Probe.Name != "m#p" {
					t.Errorf("event of %s %s", e.Pod.Name, e.Probe.Name)
				}
				got = append(got, string(e.State)+" "+e.Message)
			}
			expect.Equal(t, "events", tc.want, got)
		})
	}
}

func TestEventText(t *testing.T) {
	cases := map[string]struct {
		message, want string
	}{
		"no message":   {"", "m#p"},
		"message":      {"idle", "m#p: idle"},
		"long message": {strings.Repeat("é", 600), "m#p: " + strings.Repeat("é", 509)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			event := report.Event{Probe: &v1alpha1.ContainerProbe{Name: "m#p"}, Message: tc.message}
			if got := event.Text(); got != tc.want {
				t.Errorf("Text() = %q (%d bytes), want %q (%d bytes)", got, len(got), tc.want, len(tc.want))
			}
		})
	}
}
