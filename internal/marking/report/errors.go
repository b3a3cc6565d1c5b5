// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// ErrorDelay is how long a problem must last before it is reported. An exec that fails
	// because its container ends is over earlier.
	ErrorDelay = 3 * time.Second

	// ErrorInterval is the minimum time between two reports of a probe that differ only in
	// whether it has an error or in the reason.
	ErrorInterval = time.Minute

	// ErrorTextInterval is the minimum time between two reports of a probe that differ only
	// in the message of an error.
	ErrorTextInterval = 10 * time.Minute

	// maxErrorBytes is the maximum length of the message of an error.
	maxErrorBytes = 256

	// minErrorBytes is what the errors of a pod may take at least, in encoded bytes. The texts of a
	// pod have more, unless it has a slice of its own.
	minErrorBytes = 2 << 10

	// errorBytes is the maximum encoded bytes of an error without the name and the message.
	errorBytes = len(`{"name":"","reason":"WaitingForSlot","message":""},`)
)

// errors returns the errors of one pod's probes: the first ones that fit the budget.
func (s *sliceDecider) errors(m *member) []v1alpha1.ContainerProbeError {
	var errs []v1alpha1.ContainerProbeError
	free := m.budget.errors()
	for i := range m.probes {
		entry := s.error(m.record, &m.probes[i])
		if n := encodedError(entry); entry.Reason != "" && n <= free {
			errs, free = append(errs, entry), free-n
		}
	}
	return errs
}

func encodedError(e v1alpha1.ContainerProbeError) int {
	return errorBytes + len(e.Name) + encodedBytes(e.Message)
}

// error returns the current or the reported error of a probe. Its reason is empty if there
// is none.
func (s *sliceDecider) error(record *podRecord, c *candidate) v1alpha1.ContainerProbeError {
	reported := record.error(c.planned.Name)
	if !c.known {
		return reported
	}
	fresh := errorOf(c.planned.Name, c.state.Problem)
	due := record.errorAt[c.planned.Name]
	switch {
	case fresh == reported:
		return reported
	case fresh.Reason == reported.Reason:
		due = due.Add(ErrorTextInterval)
	case fresh.Reason == "":
		due = due.Add(ErrorInterval)
	default:
		due = due.Add(ErrorInterval)
		if lasts := c.state.Problem.Since.Add(ErrorDelay); lasts.After(due) {
			due = lasts
		}
	}
	if due.After(s.now) {
		s.recheck(due)
		return reported
	}
	return fresh
}

// errorOf returns the entry of a problem; it is empty if there is none.
func errorOf(name string, problem thresholds.Problem) v1alpha1.ContainerProbeError {
	if problem.Reason == "" {
		return v1alpha1.ContainerProbeError{}
	}
	return v1alpha1.ContainerProbeError{
		Name: name, Reason: problem.Reason, Message: text.Truncate(problem.Message, maxErrorBytes),
	}
}
