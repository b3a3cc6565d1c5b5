// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

// MayDelete reports whether no guard protects the pod from deletion. Otherwise the set has the condition that names both.
func (s *Step) MayDelete(pod *corev1.Pod) bool { return s.free(pod, s.Guards.Deletion(pod)) }

// MayChange reports whether no guard protects the pod from a change in place, as MayDelete does.
func (s *Step) MayChange(pod *corev1.Pod, change *inplace.Change) bool {
	return len(s.Guards) == 0 || !change.Restarts(pod) || s.free(pod, s.Guards.Update(pod))
}

// Next returns the next step of the update of the pod in place. It has no patch while a guard protects the pod.
func (s *Step) Next(pod *corev1.Pod) inplace.Progress {
	progress := inplace.Next(pod, s.Now)
	if patch := progress.Patch; patch != nil && len(patch.Images)+len(patch.Resources) > 0 && !s.free(pod, s.Guards.Update(pod)) {
		progress.Patch = nil
	}
	return progress
}

func (s *Step) free(pod *corev1.Pod, guard string) bool {
	s.held.Add(guard, pod.Name)
	return guard == ""
}

// GuardedLast sorts the pods so that those that guards protect come last. A pod is updated in place if change returns how; a nil
// function means that all are deleted. Otherwise the order stays.
func (s *Step) GuardedLast(pods []*corev1.Pod, change func(pod *corev1.Pod) *inplace.Change) []*corev1.Pod {
	if len(s.Guards) == 0 {
		return pods
	}
	protected := map[*corev1.Pod]int{}
	for _, pod := range pods {
		name := s.Guards.Deletion(pod)
		if change != nil && name != "" {
			if c := change(pod); c != nil && (!c.Restarts(pod) || s.Guards.Update(pod) == "") {
				name = ""
			}
		}
		if name != "" {
			protected[pod] = 1
		}
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return protected[a] - protected[b] })
}
