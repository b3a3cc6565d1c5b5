// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import "time"

// schedule has the times when the plan and the report are due. A zero time means that they
// are not.
type schedule struct{ plan, report time.Time }

// planBy makes the plan due at a time, if it is not due earlier.
func (s *schedule) planBy(at time.Time) { s.plan = earlier(s.plan, at) }

// reportBy makes the report due at a time, if it is not due earlier.
func (s *schedule) reportBy(at time.Time) { s.report = earlier(s.report, at) }

// takePlan reports whether the plan is due, and resets its time if it is.
func (s *schedule) takePlan(now time.Time) bool { return take(&s.plan, now) }

// takeReport reports whether the report is due, and resets its time if it is.
func (s *schedule) takeReport(now time.Time) bool { return take(&s.report, now) }

func take(due *time.Time, now time.Time) bool {
	if due.IsZero() || due.After(now) {
		return false
	}
	*due = time.Time{}
	return true
}

// earlier returns the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
