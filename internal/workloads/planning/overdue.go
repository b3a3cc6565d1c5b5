// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// OverdueBound is the time after the grace period of a terminating pod from which on it is overdue.
	OverdueBound = 5 * time.Minute
	// DeletionOverdue is the type of the condition that is True while new pods wait for the names or the
	// claims of pods that are overdue. It is the reason of the event about it, too.
	DeletionOverdue = "DeletionOverdue"
	// StillTerminating is the reason of the condition.
	StillTerminating = "PodsStillTerminating"
)

// Overdue returns a message about the pods that are overdue, empty if there are none, and the time until
// the next terminating pod is overdue, zero if there is none.
func Overdue(pods []*corev1.Pod, now time.Time) (string, time.Duration) {
	var names []string
	var next time.Duration
	for _, pod := range pods {
		if !Terminating(pod) {
			continue
		}
		// The deletion timestamp is the end of the grace period.
		left := pod.DeletionTimestamp.Add(OverdueBound).Sub(now)
		switch {
		case left <= 0:
			names = append(names, pod.Name)
		case next == 0 || left < next:
			next = left
		}
	}
	if len(names) == 0 {
		return "", next
	}
	slices.Sort(names)
	return fmt.Sprintf("Pods are still terminating %d minutes after their grace period, and new pods wait for "+
		"their names or claims: %s. If their node is lost, delete its Node object or add the taint %s.",
		OverdueBound/time.Minute, List(names), corev1.TaintNodeOutOfService), next
}
