// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak_test

import (
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing/thresholds"
)

// FuzzDue runs a probe at arbitrary times. It checks that the probe is never due before its
// delay, is due again after each run, and is due at multiples of the period.
func FuzzDue(f *testing.F) {
	f.Add(uint16(0), uint16(10), []byte{0, 10, 10, 37, 3})
	f.Add(uint16(30), uint16(1), []byte{255, 0, 0, 1})
	f.Add(uint16(65535), uint16(0), []byte{1, 2, 3})
	f.Add(uint16(7), uint16(3), []byte{7, 3, 3, 2, 1, 200, 6})
	f.Fuzz(func(t *testing.T, delay, period uint16, gaps []byte) {
		policy := streak.Policy{
			InitialDelay: time.Duration(delay) * time.Second, Period: max(time.Duration(period), 1) * time.Second,
			SuccessThreshold: 1, FailureThreshold: 1,
		}
		evaluator := streak.New(policy, streak.Phase{})
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
