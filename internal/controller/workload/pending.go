// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workload"
)

// A large set pauses after each step, so that a burst of events causes few steps. The event that ends
// the burst must not wait for the end of the pause: it completes a change that others wait for. So the
// changes of pods that a step leads to are counted until the cache has them. The count is only an
// estimate: if it is wrong, the step after the last event is planned when the pause ends.

// unfinished returns how many of the pods have yet to become ready or to disappear.
func unfinished(pods []*corev1.Pod) int {
	n := 0
	for _, pod := range pods {
		if workload.Terminating(pod) || workload.Active(pod) && !workload.Ready(pod) {
			n++
		}
	}
	return n
}

// completes reports whether an update of a pod is one that unfinished counts.
func completes(before, after *corev1.Pod) bool {
	return !workload.Ready(before) && workload.Ready(after)
}

// arrived notes that a pod of the set became ready or disappeared, and reports whether it was the last
// one that the set waits for.
func (m *memory) arrived(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.sets[key]
	if r == nil {
		return false
	}
	r.pending--
	return r.pending == 0
}
