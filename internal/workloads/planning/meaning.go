// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Meaning is what a condition says about its object. The package of each kind knows that of its reasons.
type Meaning string

// The meanings of conditions.
const (
	// Settled means that nothing has to be done.
	Settled Meaning = "ok"
	// Waiting means that something follows without a change by a user, or is paused by one.
	Waiting Meaning = "waiting"
	// Problem means that a user has to do something.
	Problem Meaning = "problem"
	// Note means that the object works as well without what the condition is about.
	Note Meaning = "info"
)

// MeaningOf returns the meaning of a condition that is True while something is wrong, as FailedCreate. It is empty if
// the condition says nothing.
func MeaningOf(c *metav1.Condition) Meaning {
	switch {
	case c.Type == PreDownloading:
		return Note
	case c.Status == metav1.ConditionTrue:
		return Problem
	}
	return ""
}

// MeaningOfSuccess returns the meaning of a condition that is False while something is wrong, as PodsCreated.
func MeaningOfSuccess(c *metav1.Condition) Meaning {
	if c.Status == metav1.ConditionTrue {
		return Settled
	}
	return Problem
}

// MeaningOfProgress returns the meaning of a condition that is False while something follows, as Complete.
func MeaningOfProgress(c *metav1.Condition) Meaning {
	if c.Status == metav1.ConditionTrue {
		return Settled
	}
	return Waiting
}
