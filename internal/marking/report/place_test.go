// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestNames(t *testing.T) {
	cases := map[string]struct {
		name   string
		number int
		valid  bool
	}{
		"first":            {"node-1.example.0", 0, true},
		"large":            {"node-1.example.12", 12, true},
		"leading zero":     {"node-1.example.01", 0, false},
		"negative":         {"node-1.example.-1", 0, false},
		"sign":             {"node-1.example.+1", 0, false},
		"no number":        {"node-1.example.", 0, false},
		"not a number":     {"node-1.example.x", 0, false},
		"too large":        {"node-1.example.99999999999999999999", 0, false},
		"another node":     {"node-2.example.0", 0, false},
		"node with suffix": {"node-1.example.a.0", 0, false},
		"only the node":    {"node-1.example", 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			number, valid := seamarkv1alpha1.SliceNumber("node-1.example", tc.name)
			if number != tc.number || valid != tc.valid {
				t.Errorf("SliceNumber(%q) = %d, %t, want %d, %t", tc.name, number, valid, tc.number, tc.valid)
			}
			if valid && seamarkv1alpha1.SliceName("node-1.example", number) != tc.name {
				t.Errorf("SliceName(%d) = %q, want %q", number, seamarkv1alpha1.SliceName("node-1.example", number), tc.name)
			}
		})
	}
}

// summary describes writes by the names of the pods: "0 a b", "+1 c" for one that is created,
// and "-2" for one that is deleted.
func summary(writes []report.Write) []string {
	var all []string
	for _, w := range writes {
		line := fmt.Sprint(w.Number)
		switch {
		case w.Delete:
			line = "-" + line
		case w.Create:
			line = "+" + line
		}
		for _, pod := range w.Pods {
			line += " " + pod.Name
		}
		all = append(all, line)
	}
	return all
}

// slice returns a stored slice of pods whose probe m#p changed at the time.
func slice(number int, changed float64, pods ...string) report.Slice {
	s := report.Slice{Number: number}
	for _, name := range pods {
		s.Pods = append(s.Pods, podReport(name, entry("m#p", succeeded, "ok", changed, changed)))
	}
	return s
}

func planOf(pods ...string) report.Plan {
	plan := report.Plan{Generation: 1}
	for _, name := range pods {
		plan.Pods = append(plan.Pods, podPlan(name, "m#p"))
	}
	return plan
}

func TestPlaces(t *testing.T) {
	letters := func(n int) []string { return strings.Split("abcdefghijklmnopqrstuvwxyz"[:n], "") }
	cases := map[string]struct {
		stored []report.Slice
		// plan are the planned pods. Those in results have a new state.
		plan, results []string
		want          []string
	}{
		"no slices":              {plan: letters(10), results: letters(10), want: []string{"+0 a b c d e f g h", "+1 i j"}},
		"only pods with a state": {plan: letters(10), results: []string{"j", "c"}, want: []string{"+0 c j"}},
		"nothing changed":        {stored: []report.Slice{slice(0, 0, "b", "a")}, plan: letters(3)},
		"first slice with room": {
			stored: []report.Slice{slice(1, 0, "a"), slice(2, 0, "b")}, plan: letters(3), results: []string{"c"}, want: []string{"1 a c"},
		},
		"place of a removed pod": {
			stored: []report.Slice{slice(0, 0, letters(8)...), slice(1, 0, "i")}, plan: append(letters(9)[1:], "j"),
			results: []string{"j"}, want: []string{"0 b c d e f g h j"},
		},
		"removed pods cause nothing": {stored: []report.Slice{slice(0, 0, letters(8)...), slice(1, 0, "i")}, plan: letters(3)},
		"first free number":          {stored: []report.Slice{slice(1, 0, letters(8)...)}, plan: letters(9), results: []string{"i"}, want: []string{"+0 i"}},
		"slice of a later release": {stored: []report.Slice{slice(0, 0, letters(20)...)}, plan: letters(20),
			want: []string{"0 a b c d e f g h", "+1 i j k l m n o p", "+2 q r s t"}},
		"over-full next to room": {stored: []report.Slice{slice(0, 0, letters(9)...), slice(4, 0, "j")}, plan: letters(10),
			want: []string{"0 a b c d e f g h", "4 j i"}},
		"pod in two slices, newer second": {stored: []report.Slice{slice(0, 0, "a", "b"), slice(1, 9, "b")}, plan: letters(2), want: []string{"0 a"}},
		"pod in two slices, newer first":  {stored: []report.Slice{slice(0, 9, "a", "b"), slice(1, 0, "b")}, plan: letters(2), want: []string{"1"}},
		"pod in two equal slices":         {stored: []report.Slice{slice(3, 0, "b"), slice(1, 0, "a", "b")}, plan: letters(2), want: []string{"3"}},
		"removed pod in two slices":       {stored: []report.Slice{slice(0, 0, "a", "b"), slice(1, 0, "b", "c")}, plan: []string{"a", "c"}},
		"pod twice in a slice":            {stored: []report.Slice{slice(0, 0, "a", "b", "a")}, plan: letters(2), want: []string{"0 a b"}},
		"invalid number":                  {stored: []report.Slice{slice(-7, 0, "a", "b")}, plan: letters(2), want: []string{"+0 a b"}},
		"number too large": {
			stored: []report.Slice{slice(400, 0, "a"), slice(399, 0, letters(9)[1:]...)}, plan: letters(9), want: []string{"+0 a", "-400"},
		},
		"number too large, no pods": {stored: []report.Slice{slice(0, 0, "a"), slice(1000, 0, "z")}, plan: letters(1), want: []string{"-1000"}},
		"number twice":              {stored: []report.Slice{slice(0, 0, "a"), slice(0, 0, "b")}, plan: letters(2)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, states := planOf(tc.plan...), report.States{}
			for _, pod := range tc.results {
				states[key(t, pod, "m#p")] = known(failed, "no", 10, 10)
			}
			record, d := wrote(at(10), plan, report.Read(tc.stored, nil), states)
			expect.Equal(t, "writes", tc.want, summary(d.Writes))
			if again := report.Decide(at(10), plan, record, states, nil); len(again.Writes) > 0 {
				t.Errorf("writes again %v", summary(again.Writes))
			}
		})
	}
}

// TestMaxSlices checks that an agent that has more pods than it may report writes no slice that the
// API server would reject.
func TestMaxSlices(t *testing.T) {
	plan, states := report.Plan{Generation: 1}, report.States{}
	for i := range report.MaxSlices*report.MaxPods + 9 {
		name := fmt.Sprint("p", i)
		plan.Pods = append(plan.Pods, podPlan(name, "m#p"))
		states[key(t, name, "m#p")] = known(succeeded, "ok", 1, 1)
	}
	record, d := wrote(at(1), plan, report.Record{}, states)
	if n := len(d.Writes); n != report.MaxSlices || d.Writes[n-1].Number != report.MaxSlices-1 || len(d.Writes[n-1].Pods) != report.MaxPods {
		t.Errorf("%d writes, the last one of slice %d, want %d", n, d.Writes[n-1].Number, report.MaxSlices)
	}
	if again := report.Decide(at(2), plan, record, states, nil); len(again.Writes) > 0 {
		t.Errorf("writes again %v", summary(again.Writes))
	}
	plan.Pods = plan.Pods[report.MaxPods:]
	again := report.Decide(at(3), plan, record, states, nil)
	if len(again.Writes) != 1 || again.Writes[0].Number != 0 || len(again.Writes[0].Pods) != report.MaxPods {
		t.Errorf("writes %v, want the first slice with pods that had no place", summary(again.Writes))
	}
}

// TestNewestStateOfPodInTwoSlices checks that the newer transition wins.
func TestNewestStateOfPodInTwoSlices(t *testing.T) {
	older, newer := slice(0, 0, "a"), slice(1, 9, "a")
	for _, listed := range [][]report.Slice{{older, newer}, {newer, older}} {
		got := report.Restore(planOf("a"), report.Read(listed, nil))
		expect.Equal(t, "restored states", report.States{key(t, "a", "m#p"): known(succeeded, "ok", 9, 9)}, got)
	}
}

// TestLargePodHasItsOwnSlice checks that a pod that needs a whole slice does not share it.
func TestLargePodHasItsOwnSlice(t *testing.T) {
	plan, states := report.Plan{}, report.States{}
	for pod, probes := range map[string]int{"a": 3, "b": 400, "c": 3, "d": 90, "e": 3} {
		largePlan(t, &plan, states, pod, 1, probes, "ok")
	}
	slices.SortFunc(plan.Pods, func(a, b v1alpha1.PodProbe) int { return strings.Compare(a.Name, b.Name) })
	for i := range plan.Pods {
		plan.Pods[i].Name = plan.Pods[i].Name[:1]
	}
	_, d := wrote(at(1), plan, report.Record{}, states)
	expect.Equal(t, "writes", []string{"+0 a c e", "+1 b", "+2 d"}, summary(d.Writes))
}

// TestEmptySlices plays which pods are planned from a time on, and checks when slices are
// written. Every planned pod has a state.
func TestEmptySlices(t *testing.T) {
	const minute = 60
	full := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	type change struct {
		at   float64
		pods []string
	}
	cases := map[string]struct {
		changes []change
		// pending are planned pods without a state.
		pending []string
		want    []string
	}{
		"deleted after the delay": {changes: []change{{0, []string{"a"}}, {minute, nil}}, want: []string{"0s +0 a", "11m0s -0"}},
		"used again": {
			changes: []change{{0, []string{"a"}}, {minute, nil}, {5 * minute, []string{"b"}}}, want: []string{"0s +0 a", "5m0s 0 b"},
		},
		"delay starts again": {
			changes: []change{
				{0, []string{"a"}}, {minute, nil}, {5 * minute, []string{"b"}}, {6 * minute, nil},
			}, want: []string{"0s +0 a", "5m0s 0 b", "16m0s -0"},
		},
		"same pod planned again": {changes: []change{{0, []string{"a"}}, {minute, nil}, {5 * minute, []string{"a"}}}, want: []string{"0s +0 a"}},
		"used when it would be deleted": {
			changes: []change{{0, []string{"a"}}, {minute, nil}, {11 * minute, []string{"b"}}}, want: []string{"0s +0 a", "11m0s 0 b"},
		},
		"kept for a starting pod": {changes: []change{{0, []string{"a"}}, {minute, nil}}, pending: []string{"z"}, want: []string{"0s +0 a"}},
		"room for the starting pod": {changes: []change{{0, append(full, "i")}, {minute, full[1:]}}, pending: []string{"z"},
			want: []string{"0s +0 a b c d e f g h", "0s +1 i", "11m0s -1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var record report.Record
			var plan report.Plan
			var got []string
			states, next := report.States{}, time.Time{}
			decide := func(now time.Time) {
				var d report.Decision
				record, d = wrote(now, plan, record, states)
				next = d.Next
				for _, line := range summary(d.Writes) {
					got = append(got, fmt.Sprint(now.Sub(at(0)), " ", line))
				}
			}
			until := func(end time.Time) {
				for !next.IsZero() && next.Before(end) {
					decide(next)
				}
			}
			for _, c := range tc.changes {
				until(at(c.at))
				plan = planOf(append(slices.Clone(c.pods), tc.pending...)...)
				for _, pod := range c.pods {
					states[key(t, pod, "m#p")] = known(succeeded, "ok", 0, 0)
				}
				decide(at(c.at))
			}
			until(at(100 * minute))
			expect.Equal(t, "writes", tc.want, got)
		})
	}
}

// TestReplacedPods replaces the pods of a full node one by one, several times. The node keeps
// its number of slices, and each pod costs one write.
func TestReplacedPods(t *testing.T) {
	const pods, most = 110, (110 + report.MaxPods - 1) / report.MaxPods
	plan, states, now := report.Plan{Generation: 1}, report.States{}, 0.0
	store := map[int][]seamarkv1alpha1.PodReport{}
	var record report.Record
	decide := func() (writes int) {
		var d report.Decision
		now++
		record, d = wrote(at(now), plan, record, states)
		for _, w := range d.Writes {
			if store[w.Number] = w.Pods; w.Delete {
				delete(store, w.Number)
			}
		}
		return len(d.Writes)
	}
	add := func(n int) {
		name := fmt.Sprint("pod-", n)
		plan.Pods = append(slices.Clone(plan.Pods), podPlan(name, "m#p"))
		states[key(t, name, "m#p")] = known(succeeded, "ok", now, now)
	}
	for n := range pods {
		add(n)
	}
	expect.Equal(t, "writes of all pods", most, decide())
	total := 0
	for n := range 5 * pods {
		i := (n * 37) % pods
		delete(states, key(t, plan.Pods[i].Name, "m#p"))
		plan.Pods = slices.Delete(slices.Clone(plan.Pods), i, i+1)
		total += decide()
		add(pods + n)
		total += decide()
		if len(store) > most || record.Slices() != len(store) {
			t.Fatalf("%d slices, %d in the record, want at most %d", len(store), record.Slices(), most)
		}
	}
	t.Logf("%d slices, %.2f writes of each replaced pod", len(store), float64(total)/(5*pods))
	expect.Equal(t, "writes of replaced pods", 5*pods, total)
}

// TestLostResponses checks that slices that may have been written are written again, and that
// pods keep the place that they got.
func TestLostResponses(t *testing.T) {
	states := report.States{}
	for _, pod := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		states[key(t, pod, "m#p")] = known(succeeded, "ok", 0, 0)
	}
	first := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	record, _ := wrote(at(0), planOf(first...), report.Record{}, states)
	d := report.Decide(at(1), planOf(append(first, "i")...), record, states, nil)
	if diff := cmp.Diff([]string{"+1 i"}, summary(d.Writes)); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	// The response is lost, and then slice 0 has room.
	lost := d.Record
	cases := map[string]struct {
		plan []string
		want []string
	}{
		"same plan":          {append(first, "i"), []string{"+1 i"}},
		"room in slice 0":    {append(first[1:], "i"), []string{"+1 i"}},
		"pod is not planned": {first, []string{"-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, d := wrote(at(2), planOf(tc.plan...), lost, states)
			expect.Equal(t, "writes", tc.want, summary(d.Writes))
			if again := report.Decide(at(2), planOf(tc.plan...), record, states, nil); len(again.Writes) > 0 {
				t.Errorf("writes again %v", summary(again.Writes))
			}
		})
	}
}

// TestChangeBackAfterLostResponse checks that a message that has changed back is written if the
// changed one may be stored.
func TestChangeBackAfterLostResponse(t *testing.T) {
	before := podReport("a", entry("m#p", succeeded, "before", 0, 0))
	record := report.Record{}.Wrote(at(0), create(before))
	states := report.States{key(t, "a", "m#p"): known(succeeded, "after", 1, 0)}
	lost := report.Decide(at(1), onePlan(), record, states, nil)
	states[key(t, "a", "m#p")] = known(succeeded, "before", 2, 0)
	record, d := wrote(at(2), onePlan(), lost.Record, states)
	if diff := cmp.Diff([]report.Write{write(before)}, d.Writes); diff != "" || len(lost.Writes) != 1 {
		t.Errorf("%d writes before, then (-want +got):\n%s", len(lost.Writes), diff)
	}
	if again := report.Decide(at(2), onePlan(), record, states, nil); len(again.Writes) > 0 {
		t.Errorf("writes again %v", summary(again.Writes))
	}
}
