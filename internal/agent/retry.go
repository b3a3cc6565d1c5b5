// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

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
