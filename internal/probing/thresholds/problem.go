// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package streak

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Problem is a problem of a probe that prevents a current result. It does not change the
// state.
type Problem struct {
	// Reason is empty if there is no problem.
	Reason v1alpha1.ProbeErrorReason
	// Message describes the problem. It does not depend on the run.
	Message string
	// Since is when the problem was noticed first, with any message.
	Since time.Time
}

// Troubled records a problem that prevents a current result. It changes neither the state
// nor the streak. An edit of the probe, a new run of the container, or its end clears the
// problem.
func (e *Evaluator) Troubled(now time.Time, reason v1alpha1.ProbeErrorReason, message string) {
	since := now
	if e.state.Problem.Reason == reason {
		since = e.state.Problem.Since
	}
	e.state.Problem = Problem{Reason: reason, Message: message, Since: since}
}

// Untroubled clears the problem.
func (e *Evaluator) Untroubled() { e.state.Problem = Problem{} }
