// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
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

// retry limits the attempts at something that fails.
type retry struct {
	backoff wait.Backoff
	// notBefore is when the next attempt may start.
	notBefore time.Time
	// failing reports whether the last attempt failed.
	failing bool
}

func newRetry() retry { return retry{backoff: newBackoff()} }

// newBackoff returns the back-off of requests that fail. It is at most five seconds, so that
// states are written soon after an outage.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 32, Cap: 5 * time.Second}
}

// failed delays the next attempt. It reports whether this is the first failure.
func (r *retry) failed() (first bool) {
	first = !r.failing
	r.failing, r.notBefore = true, time.Now().Add(r.backoff.Step())
	return first
}

// succeeded reports whether the attempts before this one had failed.
func (r *retry) succeeded() (resumed bool) {
	resumed = r.failing
	*r = newRetry()
	return resumed
}
