// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

func TestDue(t *testing.T) {
	begin := func(s float64) step {
		return func(e *streak.Evaluator) (streak.Transition, bool) {
			e.Begin(at(s))
			return streak.Transition{}, false
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
			evaluator := streak.New(kubernetes(), streak.Phase{})
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
		want streak.Policy
	}{
		"resolved": {
			in: corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 7, SuccessThreshold: 2, FailureThreshold: 4},
			want: streak.Policy{
				InitialDelay: 5 * time.Second, Period: 7 * time.Second, SuccessThreshold: 2, FailureThreshold: 4,
			},
		},
		"values below the minimum": {
			in:   corev1.Probe{InitialDelaySeconds: -1, FailureThreshold: -3},
			want: streak.Policy{Period: time.Second, SuccessThreshold: 1, FailureThreshold: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, streak.PolicyOf(&tc.in)); diff != "" {
				t.Errorf("PolicyOf() (-want +got):\n%s", diff)
			}
		})
	}
}
