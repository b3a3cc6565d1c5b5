// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package probestate

import "github.com/seamark-dev/seamark/internal/marking/diagnosis"

// Problem is why a probe has no state, or why its state may be outdated.
type Problem struct {
	// Reason is the type of the problem.
	Reason diagnosis.Reason `json:"reason"`
	// Message describes the problem, in lower case and without a period at the end.
	Message string `json:"message"`
}

// ProblemOf returns a finding as a row shows it, or nil if there is none or if nothing is known to be
// wrong.
func ProblemOf(found *diagnosis.Finding) *Problem {
	if found == nil || found.Waiting {
		return nil
	}
	return &Problem{Reason: found.Reason, Message: found.String()}
}
