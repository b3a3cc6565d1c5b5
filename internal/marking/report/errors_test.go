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

// troubled returns a state without results and with a problem that was noticed at since.
func troubled(reason v1alpha1.ProbeErrorReason, message string, since float64) thresholds.State {
	return thresholds.State{Problem: thresholds.Problem{Reason: reason, Message: message, Since: at(since)}}
}

// TestErrors decides each time that a state changes and each time that Decide requests it,
// and records the errors of all writes.
func TestErrors(t *testing.T) {
	type change struct {
		at    float64
		state thresholds.State
	}
	succeeds := func(s float64) thresholds.State { return known(succeeded, "ok", 0, 0) }
	counting := func(n int) (changes []change) {
		for i := range n {
			s := float64(i)
			changes = append(changes, change{s, troubled(cannotRun, fmt.Sprint("pid ", i), 0)})
		}
		return changes
	}
	flapping := func(n int) (changes []change) {
		for i := range n {
			s := float64(i) * 10
			state := succeeds(s)
			state.Problem = troubled(cannotRun, "no", s).Problem
			changes = append(changes, change{s, state}, change{s + 5, succeeds(s)})
		}
		return changes
	}
	cases := map[string]struct {
		changes []change
		want    []string
	}{
		"lasts":                 {[]change{{0, troubled(cannotRun, "no", 0)}, {10, troubled(cannotRun, "no", 0)}}, []string{"3s CannotRun no"}},
		"over within the delay": {[]change{{0, troubled(cannotRun, "no", 0)}, {2, succeeds(2)}}, []string{"2s"}},
		"cleared":               {[]change{{0, troubled(cannotRun, "no", 0)}, {90, succeeds(90)}}, []string{"3s CannotRun no", "1m30s"}},
		"cleared soon":          {[]change{{0, troubled(cannotRun, "no", 0)}, {4, troubled("", "", 0)}}, []string{"3s CannotRun no", "1m3s"}},
		"different reason": {
			[]change{{0, troubled(cannotRun, "no", 0)}, {90, troubled(notEnded, "open", 90)}}, []string{"3s CannotRun no", "1m33s NotEnded open"},
		},
		"text changes with every run": {counting(700), []string{"3s CannotRun pid 3", "10m3s CannotRun pid 603"}},
		"comes and goes every 5 s": {
			flapping(30), []string{"0s", "3s CannotRun no", "1m5s", "2m13s CannotRun no", "3m15s", "4m23s CannotRun no", "5m23s"},
		},
		"state changes at the same time": {[]change{{0, troubled(cannotRun, "no", 0)}, {1, known(failed, "gone", 1, 1)}}, []string{"1s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, states := report.Record{}, report.States{}
			var got []string
			decide := func(now time.Time) time.Time {
				var decision report.Decision
				record, decision = wrote(now, onePlan(), record, states)
				for _, w := range decision.Writes {
					line := fmt.Sprint(now.Sub(at(0)))
					for _, pod := range w.Pods {
						for _, e := range pod.Errors {
							line += fmt.Sprintf(" %s %s", e.Reason, e.Message)
						}
					}
					got = append(got, line)
				}
				return decision.Next
			}
			var next time.Time
			until := func(end time.Time) {
				for !next.IsZero() && next.Before(end) {
					next = decide(next)
				}
			}
			for _, c := range tc.changes {
				until(at(c.at))
				states[key(t, "a", "m#p")] = c.state
				next = decide(at(c.at))
			}
			until(at(tc.changes[len(tc.changes)-1].at + 100))
			expect.Equal(t, "writes", tc.want, got)
		})
	}
}

// TestErrorsSurviveAgentRestart starts from a report with an error of a probe that has no
// state.
func TestErrorsSurviveAgentRestart(t *testing.T) {
	pod := podReport("a")
	pod.Errors = []v1alpha1.ContainerProbeError{{Name: "m#p", Reason: cannotRun, Message: "no"}}
	want := report.States{key(t, "a", "m#p"): {Problem: thresholds.Problem{Reason: cannotRun, Message: "no"}}}
	record := report.Read(stored(pod), nil)
	restored := report.Restore(onePlan(), record)
	expect.Equal(t, "restored states", want, restored)
	for known, states := range map[string]report.States{"unknown": {}, "restored": restored} {
		if got := report.Decide(at(0), onePlan(), record, states, nil); len(got.Writes) > 0 {
			t.Errorf("%s: writes %v", known, got.Writes)
		}
	}
}

// TestErrorsAreWithinTheBudget has an error with a long message for each of 8 × 4 probes of two
// namespaces. The slice fits, a namespace with one error reports it, and what does not fit
// causes no writes.
func TestErrorsAreWithinTheBudget(t *testing.T) {
	plan, states := report.Plan{Generation: 1}, report.States{}
	trouble := thresholds.Problem{Reason: cannotRun, Message: strings.Repeat("<", 1000)}
	for i := range 8 {
		pod := podPlan(fmt.Sprintf("pod-%03d", i))
		probes := 4
		if i == 7 {
			pod.Namespace, probes = "tenant", 1
		}
		for j := range probes {
			name := fmt.Sprintf("%s#%d", strings.Repeat("m", 40), j)
			pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{Name: name, ContainerName: "main"})
			state := known(succeeded, strings.Repeat("x", 1000), 0, 0)
			state.Problem = trouble
			states[key(t, pod.Name, name)] = state
		}
		plan.Pods = append(plan.Pods, pod)
	}
	record, decision := wrote(at(0), plan, report.Record{}, states)
	if len(decision.Writes) != 1 {
		t.Fatalf("%d writes, want 1", len(decision.Writes))
	}
	pods, errs := decision.Writes[0].Pods, 0
	for _, pod := range pods {
		errs += len(pod.Errors)
		for _, e := range pod.Errors {
			if len(e.Message) != 256 {
				t.Fatalf("message of %d bytes, want 256", len(e.Message))
			}
		}
	}
	if size := encodedSize(t, pods); size > report.MaxBytes || errs < 8 {
		t.Errorf("%d bytes with %d errors, want at most %d and at least 8 errors", size, errs, report.MaxBytes)
	}
	if last := pods[7]; len(last.Errors) != 1 {
		t.Errorf("the namespace with one error reports %d", len(last.Errors))
	}
	if again := report.Decide(at(3600), plan, record, states, nil); len(again.Writes) > 0 {
		t.Error("errors that do not fit cause another write")
	}
	expect.Equal(t, "errors in the record", errs, record.Errors(plan, cannotRun))
}

func TestAnnouncer(t *testing.T) {
	errored := func(reason v1alpha1.ProbeErrorReason) report.Record {
		pod := podReport("a")
		pod.Errors = []v1alpha1.ContainerProbeError{{Name: "m#p", Reason: reason, Message: "no"}}
		return report.Read(stored(pod), nil)
	}
	none := report.Record{}
	type written struct {
		at     time.Duration
		record report.Record
	}
	flapping := func() (all []written) {
		for minute := range time.Duration(300) {
			all = append(all, written{2 * minute * time.Minute, errored(cannotRun)}, written{(2*minute + 1) * time.Minute, none})
		}
		return all
	}
	cases := map[string]struct {
		stored  report.Record
		written []written
		want    []string
	}{
		"no errors":      {written: []written{{0, none}}},
		"stays":          {written: []written{{0, errored(cannotRun)}}, want: []string{"0s", "1h0m0s", "3h0m0s", "7h0m0s"}},
		"stored before":  {stored: errored(cannotRun), written: []written{{0, errored(cannotRun)}}, want: []string{"1h0m0s", "3h0m0s", "7h0m0s"}},
		"cleared":        {written: []written{{0, errored(cannotRun)}, {time.Minute, none}}, want: []string{"0s"}},
		"comes and goes": {written: flapping(), want: []string{"0s", "1h0m0s", "3h0m0s", "7h0m0s"}},
		"again after a long time": {
			written: []written{
				{0, errored(cannotRun)}, {time.Minute, none}, {2 * time.Hour, none}, {3 * time.Hour, errored(cannotRun)},
			}, want: []string{"0s", "3h0m0s", "4h0m0s", "6h0m0s", "10h0m0s"},
		},
		"different reason": {
			written: []written{{0, errored(cannotRun)}, {20 * time.Minute, errored(notEnded)}}, want: []string{"0s", "20m0s", "2h20m0s", "6h20m0s"},
		},
		"different reason at once": {
			written: []written{{0, errored(cannotRun)}, {time.Minute, errored(notEnded)}}, want: []string{"0s", "1h0m0s", "3h0m0s", "7h0m0s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := report.NewAnnouncer(at(0), tc.stored)
			var got []string
			var next time.Time
			current := none
			due := func(now time.Time) {
				var events []report.Event
				events, next = a.Due(now, onePlan(), current)
				for _, e := range events {
					got = append(got, fmt.Sprint(now.Sub(at(0))))
					if e.Type() != "Warning" || e.Reason() != "KruiseProbeError" || e.Text() != "m#p: no" {
						t.Errorf("event %s %s %q", e.Type(), e.Reason(), e.Text())
					}
				}
			}
			until := func(end time.Time) {
				for !next.IsZero() && next.Before(end) {
					due(next)
				}
			}
			for _, w := range tc.written {
				until(at(0).Add(w.at))
				current = w.record
				due(at(0).Add(w.at))
			}
			until(at(0).Add(tc.written[len(tc.written)-1].at + 8*time.Hour))
			expect.Equal(t, "times of events", tc.want, got)
		})
	}
}

// TestAnnouncerOfLimitedRate has two probes of a pod that are slowed, of which one recovers for a while.
func TestAnnouncerOfLimitedRate(t *testing.T) {
	plan := onePlan()
	plan.Pods[0].Probes = append(plan.Pods[0].Probes, v1alpha1.ContainerProbe{Name: "m#q", ContainerName: "main"})
	errored := func(names ...string) report.Record {
		pod := podReport("a")
		for _, name := range names {
			pod.Errors = append(pod.Errors, v1alpha1.ContainerProbeError{Name: name, Reason: v1alpha1.ProbeRateLimited, Message: "slow"})
		}
		return report.Read(stored(pod), nil)
	}
	a := report.NewAnnouncer(at(0), report.Record{})
	for i, step := range []struct {
		minute int
		record report.Record
		want   []string
	}{
		{0, errored("m#p", "m#q"), []string{"m#p: slow"}},
		{1, errored("m#q"), nil},
		{30, errored("m#p", "m#q"), nil},
		{60, errored("m#q"), []string{"m#q: slow"}},
		{61, report.Record{}, nil},
		{170, errored("m#p"), nil},
		{180, errored("m#p", "m#q"), []string{"m#p: slow"}},
		{900, report.Record{}, nil},
		{901, errored("m#p", "m#q"), []string{"m#p: slow"}},
	} {
		var got []string
		events, _ := a.Due(at(60*float64(step.minute)), plan, step.record)
		for _, e := range events {
			got = append(got, e.Text())
		}
		expect.Equal(t, fmt.Sprintf("step %d: events", i), step.want, got)
	}
	again := report.NewAnnouncer(at(0), errored("m#p"))
	if events, next := again.Due(at(1), plan, errored("m#q")); len(events) > 0 || !next.Equal(at(3600)) {
		t.Errorf("events %v and the next one at %s after a restart, want none for an hour", events, next)
	}
}
