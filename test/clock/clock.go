// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock sets the wall clock in tests. The fake clock of testing/synctest can't be
// set: both of its readings always advance together.
package clock

import (
	"time"
	"unsafe"
)

// reading has the layout of time.Time.
type reading struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

// nanoseconds is the number of bits of reading.wall below the seconds.
const nanoseconds = 30

// Set returns t with its wall clock reading changed by a number of whole seconds and the same
// monotonic clock reading, as time.Now returns it after the wall clock was set. It panics if t
// has no monotonic clock reading, or if package time no longer has this layout.
func Set(t time.Time, by time.Duration) time.Time {
	changed := t
	(*reading)(unsafe.Pointer(&changed)).wall += uint64(by/time.Second) << nanoseconds //nolint:gosec // see Set
	if changed.Sub(t) != 0 || changed.Round(0).Sub(t.Round(0)) != by {
		panic("the wall clock reading can't be changed separately")
	}
	return changed
}
