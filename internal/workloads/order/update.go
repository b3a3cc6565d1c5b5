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
	// Priority is the strategy by labels. It may be nil.
	Priority *pub.UpdatePriorityStrategy
	// Scatter are labels whose pods are spread over the update.
	Scatter v1alpha1.UpdateScatterStrategy
	// All are all pods of the set, by which the density of labels in Scatter is computed. If it is
	// nil, it is the pods to update.
	All []*corev1.Pod
	// Tie compares pods of the same priority. If it is nil, or returns zero, the pod that is ready for
	// less time, has more restarts or is newer comes first, then the name decides.
	Tie func(a, b *corev1.Pod) int
}

// Update returns the pods in the order in which they are updated: pinned pods; pods that are
// unassigned, pending or not ready; by priority; by Tie. Scattering changes the order of the pods
// that are not pinned.
func Update(pods []*corev1.Pod, opts UpdateOptions) []*corev1.Pod {
	type entry struct {
		key
		pinned   bool
		priority Priority
	}
	priorities := newPriorities(opts.Priority)
	all := make([]entry, len(pods))
	for i, k := range keys(pods, nil) {
		all[i] = entry{key: k, pinned: opts.Pinned != nil && opts.Pinned(k.pod)}
		if !all[i].pinned {
			all[i].priority = priorities.of(k.pod)
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if order := falseFirst(!a.pinned, !b.pinned); order != 0 {
			return order
		}
		if !opts.IgnoreProgress {
			if order := progress(&a.key, &b.key); order != 0 {
				return order
			}
		}
		if order := a.priority.compare(b.priority); order != 0 {
			return order
		}
		if opts.Tie != nil {
			if order := opts.Tie(a.pod, b.pod); order != 0 {
				return order
			}
		}
		return age(&a.key, &b.key)
	})
	result, pinned := make([]*corev1.Pod, len(all)), 0
	for i := range all {
		result[i] = all[i].pod
		if all[i].pinned {
			pinned++
		}
	}
	if len(opts.Scatter) > 0 {
		whole := opts.All
		if whole == nil {
			whole = pods
		}
		copy(result[pinned:], scatter(result[pinned:], whole, opts.Scatter))
	}
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
