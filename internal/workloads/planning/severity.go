// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// Severity is how serious a condition is for its object. The package of each kind has a function that returns it.
type Severity string

// The severities of conditions.
const (
	// SeverityOK means that nothing has to be done.
	SeverityOK Severity = "ok"
	// SeverityWaiting means that something follows without a change by a user, or is paused by one.
	SeverityWaiting Severity = "waiting"
	// SeverityProblem means that a user has to do something.
	SeverityProblem Severity = "problem"
	// SeverityInfo means that the object works as well without what the condition is about.
	SeverityInfo Severity = "info"
)

// FailureSeverity returns the severity of a condition that is True while something is wrong, as FailedCreate. It is empty if
// the condition says nothing.
func FailureSeverity(c *metav1.Condition) Severity {
	switch {
	case c.Type == v1alpha1.ConditionReady || c.Type == v1alpha1.ConditionReconciling:
		return "" // They repeat the counts of pods and other conditions.
	case c.Type == PreDownloading:
		return SeverityInfo
	case c.Type == PodsGuarded && c.Status == metav1.ConditionTrue:
		return SeverityWaiting
	case c.Status == metav1.ConditionTrue:
		return SeverityProblem
	}
	return ""
}

// SuccessSeverity returns the severity of a condition that is False while something is wrong, as PodsCreated.
func SuccessSeverity(c *metav1.Condition) Severity {
	if c.Status == metav1.ConditionTrue {
		return SeverityOK
	}
	return SeverityProblem
}

// ProgressSeverity returns the severity of a condition that is False while something follows, as Complete.
func ProgressSeverity(c *metav1.Condition) Severity {
	if c.Status == metav1.ConditionTrue {
		return SeverityOK
	}
	return SeverityWaiting
}
