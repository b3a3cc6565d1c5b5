// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Transition is when a probe of a pod got the state that its labels show: see Transitions of podview.Pod.
type Transition struct {
	// Labels are the keys of the labels that the probe sets or removes.
	Labels []string
	// At is the time. It may be in the future, because agents have other clocks.
	At time.Time
}

// Since returns the first guard that protects the pod from deletion, as Deletion does, and since when: since the latest transition
// of a probe that sets labels which the guard requires, and since the start of the pod if there is none or it was before.
func (g Guards) Since(pod *corev1.Pod, transitions []Transition) (name string, since time.Time) {
	if found := g.firstOf(pod, func(*guard) bool { return true }); found != nil {
		return found.name, found.since(pod, transitions)
	}
	return "", time.Time{}
}

// since returns since when the guard protects a pod that it selects. It is zero if nothing tells.
func (g *guard) since(pod *corev1.Pod, transitions []Transition) time.Time {
	last := pod.CreationTimestamp.Time
	if pod.Status.StartTime != nil {
		last = pod.Status.StartTime.Time
	}
	required, _ := g.selector.Requirements()
	for _, transition := range transitions {
		requires := func(key string) bool {
			return slices.ContainsFunc(required, func(r labels.Requirement) bool { return r.Key() == key })
		}
		if transition.At.After(last) && slices.ContainsFunc(transition.Labels, requires) {
			last = transition.At
		}
	}
	return last
}
