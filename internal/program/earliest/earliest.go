// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package earliest returns the earlier of two times and the shorter of two waits, where each may mean never.
package earliest

import "time"

// Time returns the earlier of two times. The zero time means never.
func Time(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Wait returns the shorter of two waits. Zero or less means never; if both do, Wait returns 0.
func Wait(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}
