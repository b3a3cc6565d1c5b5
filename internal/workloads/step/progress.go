// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// Progressing is the type of the condition of a set that is False when progressDeadlineSeconds have passed.
	Progressing = "Progressing"
	// DeadlineExceeded is its reason then.
	DeadlineExceeded = "ProgressDeadlineExceeded"
)

// Deadline is progressDeadlineSeconds of a set in which something has to happen.
type Deadline struct {
	// Seconds is the time. See HasDeadline.
	Seconds int32
	// Begins reports whether the update revision differs from that of the status: the time begins again.
	Begins bool
	// Reasons are those of the condition while the time passes.
	Reasons []string
	// Since returns the time of a condition that is the beginning of the time.
	Since func(c *planning.SetCondition) *metav1.Time
	// Within and Exceeded are the condition within the time and after it.
	Within, Exceeded planning.SetCondition
}

// HasDeadline reports whether the field progressDeadlineSeconds of a set is one.
func HasDeadline(seconds *int32) bool { return seconds != nil && *seconds != math.MaxInt32 }

// ExceededDeadline returns the message about a deadline that has passed, empty if none has.
func ExceededDeadline(conditions planning.Conditions) string {
	if c := conditions.Find(Progressing); c != nil && c.Reason == DeadlineExceeded {
		return c.Message
	}
	return ""
}

// Progress sets the condition of a set in which something has to happen. The time begins when the condition gets one of the reasons,
// and with each new revision, so that a set that has been available for long has the whole time for its next update.
func (s *Step) Progress(conditions *planning.Conditions, d Deadline) {
	since, exceeded, bound := metav1.NewTime(s.Now), false, time.Duration(d.Seconds)*time.Second
	if c := conditions.Find(Progressing); c != nil && !d.Begins {
		switch {
		case c.Reason == DeadlineExceeded:
			exceeded = true
		case slices.Contains(d.Reasons, c.Reason):
			since = *d.Since(c)
			exceeded = !s.Now.Before(since.Add(bound))
		}
	}
	if exceeded {
		conditions.Put(d.Exceeded, s.Now)
		return
	}
	conditions.Put(d.Within, s.Now)
	*d.Since(conditions.Find(Progressing)) = since
	s.After(since.Add(bound).Sub(s.Now))
}
