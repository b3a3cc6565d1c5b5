// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package earliest finds when something must be looked at again without an event.
package earliest

import "time"

// Time returns the earlier of two times, of which a zero one means never.
func Time(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Wait returns the shorter of two times to wait, of which one that is not positive means never.
func Wait(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}
