// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

// Guarded reports whether a guard protects the pod from the change in place, or from deletion if the change is nil. The condition
// PodsGuarded of the set then names both.
func (s *Step) Guarded(pod *corev1.Pod, change *inplace.Change) bool {
	name := s.GuardOf(pod, change)
	s.held.Add(name, pod.Name)
	return name != ""
}

// GuardOf returns the name of the guard that protects the pod, as Guarded, and does not set the condition.
func (s *Step) GuardOf(pod *corev1.Pod, change *inplace.Change) string {
	switch {
	case len(s.Guards) == 0:
	case change == nil:
		return s.Guards.Deletion(pod)
	case change.Restarts(pod):
		return s.Guards.Update(pod)
	}
	return ""
}

// Next returns the next step of the update of the pod in place, and whether it has no patch because a guard protects the pod.
func (s *Step) Next(pod *corev1.Pod) (progress inplace.Progress, guarded bool) {
	progress = inplace.Next(pod, s.Now)
	patch := progress.Patch
	if guarded = patch != nil && s.Guarded(pod, &inplace.Change{Images: patch.Images, Resources: patch.Resources}); guarded {
		progress.Patch = nil
	}
	return progress, guarded
}

// GuardedLast sorts the pods so that those that guards protect come last. change returns how a pod is updated in place, nil if it is
// deleted. The order of the others, and among the last ones, stays.
func (s *Step) GuardedLast(pods []*corev1.Pod, change func(pod *corev1.Pod) *inplace.Change) []*corev1.Pod {
	if len(s.Guards) == 0 {
		return pods
	}
	last := map[*corev1.Pod]int{}
	for _, pod := range pods {
		if s.GuardOf(pod, change(pod)) != "" {
			last[pod] = 1
		}
	}
	return slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return last[a] - last[b] })
}

// Deleted is the change in place of pods that are deleted: none.
func Deleted(*corev1.Pod) *inplace.Change { return nil }
