// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/chaos/oracle"
)

// This file is the model of the rules of docs/exclusive.md. The values of each policy are unique, so that a value says which
// policy has set a mark.

// makeExclusive makes the policy of some probes exclusive, in groups or not. It uses no random numbers, so that cases that are
// kept stay as they are.
func (w *world) makeExclusive(p *v1alpha1.PodContainerProbe) {
	if w.created%4 != 0 {
		return
	}
	policy := &p.MarkerPolicy[0]
	policy.Exclusive = &v1alpha1.ExclusivePolicy{}
	label := fmt.Sprintf("%sk%d", markPrefix, w.created/8%keys)
	if w.created%8 == 0 && !oracle.Declared(p)[field{Kind: oracle.Label, Name: label}] {
		policy.Exclusive.PerLabel = label
	}
}

// exclusiveIn returns the exclusive policy of the probe, or nil.
func exclusiveIn(p *v1alpha1.PodContainerProbe) *v1alpha1.ProbeMarkerPolicy {
	for i := range p.MarkerPolicy {
		if p.MarkerPolicy[i].Exclusive != nil {
			return &p.MarkerPolicy[i]
		}
	}
	return nil
}

// groupOf returns the group of the pod, and whether it is in one.
func groupOf(policy *v1alpha1.ProbeMarkerPolicy, pod *corev1.Pod) (string, bool) {
	if policy.Exclusive.PerLabel == "" {
		return "", true
	}
	group, found := pod.Labels[policy.Exclusive.PerLabel]
	return group, found
}

// holds reports whether the pod has one of the marks of the policy.
func holds(policy *v1alpha1.ProbeMarkerPolicy, pod *corev1.Pod) bool {
	have := actual(pod)
	for key, value := range oracle.MarksIn(&v1alpha1.PodContainerProbe{MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{*policy}}, policy.State) {
		if have[key] == value {
			return true
		}
	}
	return false
}

// contested returns the state that a state counts as: that of an exclusive policy counts as Unknown for pods that do not have
// its marks. claimed are the keys of earlier probes.
func contested(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe, state v1alpha1.ProbeState, claimed map[field]bool) v1alpha1.ProbeState {
	policy := exclusiveIn(probe)
	if policy == nil || policy.State != state || !claims(policy, claimed) {
		return state
	}
	if _, grouped := groupOf(policy, pod); grouped && holds(policy, pod) {
		return state
	}
	return v1alpha1.ProbeUnknown
}

// claims reports whether a key of the policy is not one of an earlier probe.
func claims(policy *v1alpha1.ProbeMarkerPolicy, claimed map[field]bool) bool {
	for key := range oracle.MarksIn(&v1alpha1.PodContainerProbe{MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{*policy}}, policy.State) {
		if !claimed[key] {
			return true
		}
	}
	return false
}

// seat is what one pod at a time has.
type seat struct{ token, group string }

// checkSeats checks that each seat that a pod claims is taken by one pod, when nothing changes any more.
func (w *world) checkSeats() error {
	claimed, taken := map[seat]bool{}, map[seat][]string{}
	for _, o := range w.server.List(pods) {
		pod := o.(*corev1.Pod) //nolint:forcetypeassert // all are
		w.eachProbe(pod, func(probe *v1alpha1.PodContainerProbe, before map[field]bool) {
			policy := exclusiveIn(probe)
			if policy == nil {
				return
			}
			group, grouped := groupOf(policy, pod)
			if !grouped || !claims(policy, before) {
				return
			}
			at := seat{token: token(probe), group: group}
			claimed[at] = claimed[at] || !oracle.Ended(pod) && !w.isStale(pod, probe) && w.state(pod, probe) == policy.State
			if holds(policy, pod) {
				taken[at] = append(taken[at], pod.Name)
			}
		})
	}
	for at, claims := range claimed {
		if n := len(taken[at]); claims && n != 1 {
			return fmt.Errorf("pods %v have the exclusive marks of %+v, want one", taken[at], at)
		}
	}
	return nil
}

// checkExclusive checks that a pod that gets exclusive marks from a manager is the only one of its group. Pods whose labels a user has
// changed while they had the marks do not count.
func (w *world) checkExclusive(e event) {
	pod, before := e.After.(*corev1.Pod), e.Before.(*corev1.Pod) //nolint:forcetypeassert // of this kind
	w.mu.Lock()
	versions := slices.Clone(w.history.versions)
	w.mu.Unlock()
	for _, marker := range versions {
		for i := range marker.Spec.Probes {
			policy := exclusiveIn(&marker.Spec.Probes[i])
			if policy == nil || !matches(marker, pod.Labels) || holds(policy, before) || !holds(policy, pod) {
				continue
			}
			group, grouped := groupOf(policy, pod)
			for _, o := range w.server.List(pods) {
				other := o.(*corev1.Pod) //nolint:forcetypeassert // all are
				of, also := groupOf(policy, other)
				if other.UID == pod.UID || w.history.moved[other.UID] || !matches(marker, other.Labels) || !grouped || !also || of != group || !holds(policy, other) {
					continue
				}
				w.fail(fmt.Errorf("pod %s (%s) gets exclusive marks of %s, which pod %s has", pod.Name, pod.UID, token(&marker.Spec.Probes[i]), other.Name))
			}
		}
	}
}

// noteMove notes whether a user has moved a pod that has exclusive marks.
func (w *world) noteMove(by string, e event) {
	pod, isPod := e.After.(*corev1.Pod)
	before, existed := e.Before.(*corev1.Pod)
	if !isPod || !existed || by != "user" || maps.Equal(pod.Labels, before.Labels) {
		return
	}
	w.history.moved[pod.UID] = true
}

// eachProbe calls visit with each probe of the markers that select the pod, whose container the pod has, and with the keys of
// those before it.
func (w *world) eachProbe(pod *corev1.Pod, visit func(probe *v1alpha1.PodContainerProbe, before map[field]bool)) {
	before := map[field]bool{}
	// Ordered by name.
	for _, o := range w.server.List(markers) {
		marker := o.(*v1alpha1.PodProbeMarker) //nolint:forcetypeassert // all are
		if marker.DeletionTimestamp != nil || marker.Namespace != pod.Namespace || !matches(marker, pod.Labels) {
			continue
		}
		for i := range marker.Spec.Probes {
			probe := &marker.Spec.Probes[i]
			if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == probe.ContainerName }) {
				visit(probe, before)
				maps.Copy(before, oracle.Declared(probe))
			}
		}
	}
}

// hasExclusive reports whether a marker has an exclusive policy.
func (w *world) hasExclusive() bool {
	return slices.ContainsFunc(w.history.versions, func(m *v1alpha1.PodProbeMarker) bool {
		_, err := w.server.Get(markers, types.NamespacedName{Namespace: m.Namespace, Name: m.Name})
		return err == nil && slices.ContainsFunc(m.Spec.Probes, func(p v1alpha1.PodContainerProbe) bool { return exclusiveIn(&p) != nil })
	})
}

// lost returns what a condition says about the keys of a probe that belong to an earlier probe of the pod.
func (w *world) lost(pod *corev1.Pod, probe *v1alpha1.PodContainerProbe) (texts []string) {
	winners := map[field]string{}
	w.eachProbe(pod, func(each *v1alpha1.PodContainerProbe, _ map[field]bool) {
		marker, _, _ := strings.Cut(token(each), ".")
		for key := range oracle.Declared(each) {
			switch winner, taken := winners[key]; {
			case !taken:
				winners[key] = fmt.Sprintf("probe %q of marker %q", each.Name, marker)
			case token(each) == token(probe):
				texts = append(texts, fmt.Sprintf("Probe %q: %s %q is set by %s", probe.Name, key.Kind, key.Name, winner))
			}
		}
	})
	return texts
}
