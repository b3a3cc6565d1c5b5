// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package thresholds_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestDue(t *testing.T) {
	begin := func(s float64) step {
		return func(e *thresholds.Evaluator) (thresholds.Transition, bool) {
			e.Begin(at(s))
			return thresholds.Transition{}, false
		}
	}
	cases := map[string]struct {
		steps []step
		want  float64
	}{
		"first run":                  {steps: []step{running(0, "a", 0), begin(0)}, want: 10},
		"late run":                   {steps: []step{running(0, "a", 0), begin(3)}, want: 10},
		"skipped runs":               {steps: []step{running(0, "a", 0), begin(0), begin(37)}, want: 40},
		"skipped runs, exact period": {steps: []step{running(0, "a", 0), begin(0), begin(20)}, want: 30},
		"early run":                  {steps: []step{running(0, "a", 0), begin(0), begin(5)}, want: 10},
		"container restart":          {steps: []step{running(0, "a", 0), begin(0), running(3, "b", 3)}, want: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			evaluator := thresholds.New(kubernetes(), thresholds.Phase{})
			for _, s := range tc.steps {
				s(evaluator)
			}
			if due, ok := evaluator.Due(); !ok || !due.Equal(at(tc.want)) {
				t.Errorf("Due() = %s, %t, want %s", due, ok, at(tc.want))
			}
		})
	}
}

func TestPolicyOf(t *testing.T) {
	cases := map[string]struct {
		in   corev1.Probe
		want thresholds.Policy
	}{
		"resolved": {
			in: corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 7, SuccessThreshold: 2, FailureThreshold: 4},
			want: thresholds.Policy{
				InitialDelay: 5 * time.Second, Period: 7 * time.Second, SuccessThreshold: 2, FailureThreshold: 4,
			},
		},
		"values below the minimum": {
			in:   corev1.Probe{InitialDelaySeconds: -1, FailureThreshold: -3},
			want: thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "PolicyOf()", tc.want, thresholds.PolicyOf(&tc.in))
		})
	}
}

func TestMilliseconds(t *testing.T) {
	tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{}}
	cases := map[string]struct {
		handler                 corev1.ProbeHandler
		period, timeout         int32
		wantPeriod, wantTimeout time.Duration
	}{
		"unset":             {handler: tcp, wantPeriod: 7 * time.Second, wantTimeout: 3 * time.Second},
		"network":           {handler: tcp, period: 100, timeout: 150, wantPeriod: 100 * time.Millisecond, wantTimeout: 150 * time.Millisecond},
		"period only":       {handler: exec, period: 700, wantPeriod: 700 * time.Millisecond, wantTimeout: 3 * time.Second},
		"timeout only":      {handler: exec, timeout: 1500, wantPeriod: 7 * time.Second, wantTimeout: 1500 * time.Millisecond},
		"network too short": {handler: tcp, period: 1, timeout: 99, wantPeriod: 100 * time.Millisecond, wantTimeout: 100 * time.Millisecond},
		"exec too short":    {handler: exec, period: 100, timeout: 499, wantPeriod: 500 * time.Millisecond, wantTimeout: 500 * time.Millisecond},
		"negative":          {handler: tcp, period: -1, timeout: -1, wantPeriod: 7 * time.Second, wantTimeout: 3 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.ContainerProbeSpec{
				Probe:              corev1.Probe{ProbeHandler: tc.handler, PeriodSeconds: 7, TimeoutSeconds: 3},
				PeriodMilliseconds: tc.period, TimeoutMilliseconds: tc.timeout,
			}
			policy, timeout := thresholds.PlannedPolicy(&spec), thresholds.PlannedTimeout(&spec)
			if policy.Period != tc.wantPeriod || timeout != tc.wantTimeout {
				t.Errorf("period %s and timeout %s, want %s and %s", policy.Period, timeout, tc.wantPeriod, tc.wantTimeout)
			}
		})
	}
}

// FuzzDue runs a probe at arbitrary times. It checks that the probe is never due before its
// delay, is due again after each run, and is due at multiples of the period.
func FuzzDue(f *testing.F) {
	f.Add(uint16(0), uint16(10), []byte{0, 10, 10, 37, 3})
	f.Add(uint16(30), uint16(1), []byte{255, 0, 0, 1})
	f.Add(uint16(65535), uint16(0), []byte{1, 2, 3})
	f.Add(uint16(7), uint16(3), []byte{7, 3, 3, 2, 1, 200, 6})
	f.Fuzz(func(t *testing.T, delay, period uint16, gaps []byte) {
		policy := thresholds.Policy{
			InitialDelay: time.Duration(delay) * time.Second, Period: max(time.Duration(period), 1) * time.Second,
			SuccessThreshold: 1, FailureThreshold: 1,
		}
		evaluator := thresholds.New(policy, thresholds.Phase{})
		running(0, "a", 0)(evaluator)
		first := at(0).Add(policy.InitialDelay)
		now := at(0)
		for i, gap := range gaps {
			now = now.Add(time.Duration(gap) * time.Second)
			before, _ := evaluator.Due()
			evaluator.Begin(now)
			due, ok := evaluator.Due()
			switch {
			case !ok || due.Before(first):
				t.Fatalf("run %d: due at %s, %t, want %s or later", i, due, ok, first)
			case due.Sub(first)%policy.Period != 0:
				t.Fatalf("run %d: due at %s, want a multiple of %s after %s", i, due, policy.Period, first)
			case now.Before(before) && !due.Equal(before):
				t.Fatalf("run %d: early run moved the due time from %s to %s", i, before, due)
			case !now.Before(before) && (!due.After(now) || due.Sub(now) > policy.Period):
				t.Fatalf("run %d at %s: next run due at %s, want within one period", i, now, due)
			}
		}
	})
}

func TestProblem(t *testing.T) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	policy := thresholds.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1}
	problem := thresholds.Problem{Reason: v1alpha1.ProbeCannotRun, Message: "not found", Since: start.Add(time.Second)}
	run := thresholds.ContainerRun{ID: "c1", Running: true, StartedAt: start}
	cases := map[string]struct {
		next func(*thresholds.Evaluator, time.Time)
		want thresholds.Problem
	}{
		"stays": {func(*thresholds.Evaluator, time.Time) {}, problem},
		"again with a different message": {func(e *thresholds.Evaluator, now time.Time) {
			e.Troubled(now, v1alpha1.ProbeCannotRun, "no shell")
		}, thresholds.Problem{Reason: v1alpha1.ProbeCannotRun, Message: "no shell", Since: problem.Since}},
		"different reason": {func(e *thresholds.Evaluator, now time.Time) {
			e.Troubled(now, v1alpha1.ProbeNotEnded, "open")
		}, thresholds.Problem{Reason: v1alpha1.ProbeNotEnded, Message: "open", Since: start.Add(2 * time.Second)}},
		"outcome": {func(e *thresholds.Evaluator, now time.Time) { e.Outcome(now, probing.Outcome{}) }, problem},
		"cleared": {next: func(e *thresholds.Evaluator, _ time.Time) { e.Untroubled() }},
		"container ended": {next: func(e *thresholds.Evaluator, now time.Time) {
			e.ContainerChanged(now, thresholds.ContainerRun{ID: "c1", StartedAt: start})
		}},
		"container replaced": {next: func(e *thresholds.Evaluator, now time.Time) {
			e.ContainerChanged(now, thresholds.ContainerRun{ID: "c2", Running: true, StartedAt: now})
		}},
		"container gone": {next: func(e *thresholds.Evaluator, now time.Time) { e.ContainerGone(now) }},
		"edited":         {next: func(e *thresholds.Evaluator, now time.Time) { e.Edited(now, policy) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := thresholds.New(policy, thresholds.Phase{})
			e.ContainerChanged(start, run)
			e.Outcome(start, probing.Outcome{Success: true})
			e.Troubled(problem.Since, problem.Reason, problem.Message)
			expect.Equal(t, "state after a problem", v1alpha1.ProbeSucceeded, e.State().State)
			tc.next(e, start.Add(2*time.Second))
			expect.Equal(t, "problem", tc.want, e.State().Problem)
		})
	}
}
