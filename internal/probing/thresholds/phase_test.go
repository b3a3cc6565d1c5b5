// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/clock"
	"github.com/seamark-dev/seamark/test/expect"
)

// runTimes returns when the first n runs are due, relative to at(0). Each starts when it is due.
func runTimes(e *thresholds.Evaluator, n int) []time.Duration {
	var times []time.Duration
	for range n {
		due, _ := e.Due()
		times = append(times, due.Sub(at(0)))
		e.Begin(due)
	}
	return times
}

func seconds(s ...float64) []time.Duration {
	var times []time.Duration
	for _, s := range s {
		times = append(times, time.Duration(s*float64(time.Second)))
	}
	return times
}

// TestPhase checks when a probe with a period of 10 seconds runs. at(0) is a multiple of it.
func TestPhase(t *testing.T) {
	cases := map[string]struct {
		// origin is when the process started, offset the phase.
		origin, offset float64
		start          thresholds.State
		steps          []step
		want           []time.Duration
	}{
		"first run in the phase":          {steps: []step{running(0, "a", 0)}, want: seconds(0, 10, 20, 30)},
		"first run just before the phase": {offset: 0.1, steps: []step{running(0, "a", 0)}, want: seconds(0, 11, 21, 31)},
		"first run half a period before":  {offset: 0.5, steps: []step{running(0, "a", 0)}, want: seconds(0, 12.5, 23.75, 35, 45)},
		"first run just after the phase":  {offset: 0.9, steps: []step{running(0, "a", 0)}, want: seconds(0, 14.5, 26.75, 37.875, 49, 59)},
		"first run after the delay":       {offset: 0.1, steps: []step{edited(0, delayed()), running(0, "a", 0)}, want: seconds(30, 41, 51)},
		"process started during a period": {origin: -7, offset: 0.1, steps: []step{running(0, "a", 0)}, want: seconds(0, 11, 21)},
		"process started after the phase": {origin: -3.25, offset: 0.1, steps: []step{running(0, "a", 0)}, want: seconds(0, 11, 21)},
		"restored state":                  {offset: 0.5, start: reported(succeeded), steps: []step{running(0, "a", -900)}, want: seconds(5, 15, 25)},
		"restored state without a result": {offset: 0.5, start: reported(unknown), steps: []step{running(0, "a", -900)}, want: seconds(0, 12.5)},
		"restored state, new container":   {offset: 0.1, start: reported(succeeded), steps: []step{running(2, "b", 1)}, want: seconds(2, 16.5)},
		"container restart":               {offset: 0.1, steps: []step{running(0, "a", 0), running(3, "b", 3)}, want: seconds(3, 17, 29, 40, 51, 61)},
		"edit":                            {offset: 0.1, steps: []step{running(0, "a", 0), edited(4, kubernetes())}, want: seconds(4, 17.5)},
		"edit of the period, other phase": {offset: 0.5, steps: []step{running(0, "a", 0), edited(2, every(4))}, want: seconds(2, 6, 10)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := thresholds.Restore(kubernetes(), thresholds.Phase{Origin: at(tc.origin), Offset: tc.offset}, tc.start)
			for _, s := range tc.steps {
				s(e)
			}
			expect.Equal(t, "runs", tc.want, runTimes(e, len(tc.want)))
		})
	}
}

// TestPhaseIsReached checks for many phases and periods that the fifth run is in the phase, and that
// the time between two runs is never shorter than the period and at most half a period longer.
func TestPhaseIsReached(t *testing.T) {
	for period := 1; period <= 61; period += 3 {
		for offset := 0.0; offset < 1; offset += 0.0137 {
			policy, phase := every(period), thresholds.Phase{Origin: at(-1234.567), Offset: offset}
			restored := thresholds.Restore(policy, phase, reported(succeeded))
			running(1000.25, "a", -900)(restored)
			inPhase := runTimes(restored, 1)[0]

			e := thresholds.New(policy, phase)
			running(0.125, "a", 0)(e)
			times := runTimes(e, 8)
			for i, gap := range gaps(times) {
				if gap < policy.Period || gap > policy.Period*3/2 || i >= 4 && gap != policy.Period {
					t.Fatalf("period %s, offset %f: run %d follows after %s", policy.Period, offset, i+2, gap)
				}
			}
			if (times[4]-inPhase)%policy.Period != 0 {
				t.Fatalf("period %s, offset %f: fifth run at %s is not in the phase, %s", policy.Period, offset, times[4], inPhase)
			}
		}
	}
}

// gaps returns the times between runs.
func gaps(times []time.Duration) []time.Duration {
	var gaps []time.Duration
	for i := range len(times) - 1 {
		gaps = append(gaps, times[i+1]-times[i])
	}
	return gaps
}

func delayed() thresholds.Policy {
	p := kubernetes()
	p.InitialDelay = 30 * time.Second
	return p
}

func every(seconds int) thresholds.Policy {
	p := kubernetes()
	p.Period = time.Duration(seconds) * time.Second
	return p
}

// TestClockSteps sets the wall clock while a probe is scheduled. The runs continue as if it had
// not been set, and the reported times follow it.
func TestClockSteps(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour, "by a fraction of the period": 7 * time.Second} {
		t.Run(name, func(t *testing.T) {
			start := time.Now() //nolint:forbidigo // only it has a monotonic reading
			// after returns what time.Now returns after a number of seconds. The wall
			// clock is set after 5 seconds.
			after := func(seconds int) time.Time {
				now := start.Add(time.Duration(seconds) * time.Second)
				if seconds < 5 {
					return now
				}
				return clock.Set(now, by)
			}
			policy := delayed()
			e := thresholds.New(policy, thresholds.Phase{Origin: start, Offset: 0.3})
			runtimeClock := start.Round(0) // Has no monotonic reading.
			e.ContainerChanged(after(1), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: runtimeClock})

			due, _ := e.Due()
			if wait := due.Sub(start); wait != policy.InitialDelay {
				t.Fatalf("first run is due after %s, want %s", wait, policy.InitialDelay)
			}
			for run := range 8 {
				now := clock.Set(due, by)
				if run > 0 {
					now = due // It was derived from a reading after the clock was set.
				}
				e.Begin(now)
				next, _ := e.Due()
				if gap := next.Sub(due); gap < policy.Period || gap > policy.Period*3/2 || run > 4 && gap != policy.Period {
					t.Errorf("run %d is due %s after the previous one", run+1, gap)
				}
				due = next
			}

			transition, changed := success(0, "ok")(e)
			if !changed || transition.To != v1alpha1.ProbeSucceeded {
				t.Fatalf("Outcome() = %+v, %t", transition, changed)
			}
			e.ContainerChanged(after(400), thresholds.ContainerRun{ID: "a", Reason: "ended"})
			if got, want := e.State().LastTransition.Unix(), start.Add(400*time.Second+by).Unix(); got != want {
				t.Errorf("LastTransition is %d, want %d on the wall clock", got, want)
			}
			e.ContainerChanged(after(410), thresholds.ContainerRun{ID: "b", Running: true, StartedAt: after(409).Round(0)})
			if due, _ := e.Due(); due.Sub(start) != 409*time.Second+policy.InitialDelay {
				t.Errorf("first run of the new container is due after %s, want its delay", due.Sub(start))
			}
		})
	}
}

// TestRestoredStateAfterClockWasSetBack covers an agent that restarts after the wall clock was set
// back by an hour: the start of the container is in the future.
func TestRestoredStateAfterClockWasSetBack(t *testing.T) {
	e := thresholds.Restore(kubernetes(), thresholds.Phase{}, reported(succeeded))
	if transition, changed := running(0, "a", 3000)(e); changed {
		t.Errorf("the state changed: %+v", transition)
	}
	if due, _ := e.Due(); !due.Equal(at(0)) {
		t.Errorf("due at %s, want %s", due, at(0))
	}
}
