// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"
)

// loop calls do until ctx ends: at the start, and whenever next is due. A token in wake means that
// next has changed. It is zero if nothing is due.
func loop(ctx context.Context, wake <-chan struct{}, next func() time.Time, do func()) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-timer.C:
			do()
		}
		if at := next(); !at.IsZero() {
			timer.Reset(time.Until(at))
		}
	}
}

// schedule sets at to t, unless it is earlier, and wakes the loop.
func schedule(wake chan<- struct{}, at *time.Time, t time.Time) {
	if !at.IsZero() && !t.Before(*at) {
		return
	}
	*at = t
	select {
	case wake <- struct{}{}:
	default:
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
