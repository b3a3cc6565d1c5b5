// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// UpdateOptions are what the update order depends on besides the pods.
type UpdateOptions struct {
	// Pinned reports whether the pod comes before all others: its update has started. Pinned pods keep
	// the order of the other criteria among each other, but not the order of the priority: a label
	// that changes during an update does not change which pods are updated. It may be nil.
	Pinned func(*corev1.Pod) bool
	// IgnoreProgress omits the criterion that pods that do not run or are not ready come first.
	IgnoreProgress bool
	// PriorityFirst lets the priority decide before this criterion: not all pods are updated, and the priority says which.
	PriorityFirst bool
	// Priority is the strategy by labels. It may be nil.
	Priority *pub.UpdatePriorityStrategy
	// Scatter are labels whose pods are spread over the update.
	Scatter v1alpha1.UpdateScatterStrategy
	// All are all pods of the set, by which the density of labels in Scatter is computed.
	All []*corev1.Pod
	// Tie compares pods of the same priority. If it is nil, or returns zero, the pod that is ready for
	// less time, has more restarts or is newer comes first, then the name decides.
	Tie func(a, b *corev1.Pod) int
}

// Update returns the pods in the order in which they are updated: pinned pods; pods that are
// unassigned, pending or not ready; by priority; by Tie. Scattering changes the order of the pods
// that are not pinned.
func Update(pods []*corev1.Pod, opts UpdateOptions) []*corev1.Pod {
	priorities := newPriorities(opts.Priority)
	ranked, pinned := keys(pods, nil), 0
	for i := range ranked {
		k := &ranked[i]
		if k.pinned = opts.Pinned != nil && opts.Pinned(k.pod); k.pinned {
			pinned++
		} else {
			k.priority = priorities.priorityOf(k.pod)
		}
	}
	slices.SortFunc(ranked, func(a, b key) int {
		order := falseFirst(!a.pinned, !b.pinned)
		if order == 0 && opts.PriorityFirst {
			order = a.priority.compare(b.priority)
		}
		if order == 0 && !opts.IgnoreProgress {
			order = progress(&a, &b)
		}
		if order == 0 {
			order = a.priority.compare(b.priority)
		}
		if order == 0 && opts.Tie != nil {
			order = opts.Tie(a.pod, b.pod)
		}
		return cmp.Or(order, age(&a, &b))
	})
	result := podsOf(ranked)
	copy(result[pinned:], scatter(result[pinned:], opts.All, opts.Scatter))
	return result
}

// Priority is the position of a pod in the update order by its labels. The zero value is the first.
type Priority struct {
	// level is the number of the ordered key that the pod has, 0 with weights, and the number of keys
	// if the pod has none of them.
	level int
	// value is the weight, or the integer at the end of the value of the ordered key. Higher values
	// come first.
	value int64
}

func (p Priority) compare(other Priority) int {
	return cmp.Or(cmp.Compare(p.level, other.level), cmp.Compare(other.value, p.value))
}

// scatter spreads the pods that have a label of the terms over the sequence. Among themselves, the
// pods with the label and the pods without it keep their order. Terms apply one after the other, the
// one that most pods have first, so that the most common label is spread most evenly last.
func scatter(pods, all []*corev1.Pod, terms v1alpha1.UpdateScatterStrategy) []*corev1.Pod {
	for _, term := range sorted(pods, terms) {
		pods = spread(pods, all, term)
	}
	return pods
}

// sorted returns the terms that pods have, the most common one first.
func sorted(pods []*corev1.Pod, terms v1alpha1.UpdateScatterStrategy) v1alpha1.UpdateScatterStrategy {
	if len(terms) == 1 {
		return terms
	}
	count := make(map[v1alpha1.UpdateScatterTerm]int, len(terms))
	result := make(v1alpha1.UpdateScatterStrategy, 0, len(terms))
	for _, term := range terms {
		if _, ok := count[term]; ok {
			continue
		}
		for _, pod := range pods {
			if hasLabel(pod, term) {
				count[term]++
			}
		}
		if count[term] > 0 {
			result = append(result, term)
		}
	}
	slices.SortStableFunc(result, func(a, b v1alpha1.UpdateScatterTerm) int { return count[b] - count[a] })
	return result
}

func hasLabel(pod *corev1.Pod, term v1alpha1.UpdateScatterTerm) bool {
	value, ok := pod.Labels[term.Key]
	return ok && value == term.Value
}

// spread distributes the pods that have the label evenly over the pods that do not. The last pod with
// the label ends the sequence. If pods without the label have been updated before, their share among
// the pods to update is lower than in the set, and the surplus of pods with the label is updated at
// the end.
func spread(pods, all []*corev1.Pod, term v1alpha1.UpdateScatterTerm) []*corev1.Pod {
	var with, without []*corev1.Pod
	for _, pod := range pods {
		if hasLabel(pod, term) {
			with = append(with, pod)
		} else {
			without = append(without, pod)
		}
	}
	if len(with) <= 1 || len(without) <= 1 {
		return pods
	}
	result := make([]*corev1.Pod, 0, len(pods))
	last := with[len(with)-1]
	with = with[:len(with)-1]

	// Pods without the label that exceed the density of the set come first.
	totalWith := -1
	for _, pod := range all {
		if hasLabel(pod, term) {
			totalWith++
		}
	}
	totalWithout := len(all) - totalWith - 1
	if totalWith > 0 && totalWithout*len(with) < len(without)*totalWith {
		surplus := len(without) - (totalWithout*len(with)+totalWith-1)/totalWith
		result, without = append(result, without[:surplus]...), without[surplus:]
	}
	return append(merge(result, with, without), last)
}

// merge appends the pods of both sequences: at each point, the sequence of which less has been taken
// continues.
func merge(result, with, without []*corev1.Pod) []*corev1.Pod {
	i, j := 0, 0
	for i < len(with) || j < len(without) {
		if j == len(without) || i < len(with) && i*len(without) <= j*len(with) {
			result = append(result, with[i])
			i++
		} else {
			result = append(result, without[j])
			j++
		}
	}
	return result
}
