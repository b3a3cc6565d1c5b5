// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

const (
	// ResizeStuck is the reason of the condition about updates that fail while the resize of a pod does not take effect,
	// and the reason of the event about it.
	ResizeStuck = "ResizeStuck"
	// longestStuck bounds what the kubelet or the API server says about it, in bytes.
	longestStuck = 500
)

// stuck is a pod whose resize does not take effect, and why.
type stuck struct{ pod, why string }

// Stuck notes that the resize of a pod does not take effect, because of what inplace.Next returns. It does nothing if the text
// is empty.
func (s *Step) Stuck(pod, why string) {
	if why != "" {
		s.stuck = append(s.stuck, stuck{pod: pod, why: why})
	}
}

// reportStuck sets the condition about updates that fail, and adds an event, if a resize does not take effect. Another reason
// of a planner is kept: it says more about what the user can do. There is one event until the condition is False or about another
// pod: the kubelet's text may contain numbers that change, and a refused write of another pod takes the condition in turn.
func (s *Step) reportStuck(conditions *planning.Conditions, before planning.Conditions) {
	message, pod := "", ""
	if len(s.stuck) > 0 {
		first := slices.MinFunc(s.stuck, func(a, b stuck) int { return strings.Compare(a.pod, b.pod) })
		pod = fmt.Sprintf("pod %s ", first.pod)
		message = fmt.Sprintf("The resize of pod %s is stuck: %s", first.pod, text.Truncate(first.why, longestStuck))
		if more := len(s.stuck) - 1; more > 0 {
			message = fmt.Sprintf("The resizes of %d pods are stuck, that of pod %s because %s", more+1, first.pod, text.Truncate(first.why, longestStuck))
		}
	}
	if c := conditions.Find(s.set.FailedUpdate); c != nil && c.Status == corev1.ConditionTrue && planning.Decided(c) && c.Reason != ResizeStuck {
		return
	}
	conditions.Set(s.set.FailedUpdate, ResizeStuck, message, s.Now)
	old := before.Find(s.set.FailedUpdate)
	reported := old != nil && old.Status == corev1.ConditionTrue && (old.Reason != ResizeStuck || strings.Contains(old.Message, pod))
	if message != "" && !reported {
		s.actions.StatusEvents = append(s.actions.StatusEvents, planning.Event{
			Type: corev1.EventTypeWarning, Reason: ResizeStuck, Sentence: message,
		})
	}
}
