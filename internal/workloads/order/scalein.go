// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ScaleInOptions are what the scale-in order depends on besides the pods.
type ScaleInOptions struct {
	// Available reports whether a ready pod is available. If it is nil, all ready pods are.
	Available func(*corev1.Pod) bool
	// TopologyKeys are the node labels over which the set spreads its pods. If there are none, pods
	// are spread over nodes.
	TopologyKeys []string
	// Nodes are the labels of nodes by the name of the node. They are read if there are TopologyKeys.
	Nodes map[string]map[string]string
}

// ScaleIn returns the pods in the order in which they are deleted. The first criterion that differs
// decides: unassigned; phase Pending, Unknown, Running; not available; not ready; lower deletion
// cost; more crowded topology; ready for less time; more restarts; newer; name.
func ScaleIn(pods []*corev1.Pod, opts ScaleInOptions) []*corev1.Pod {
	all := keys(pods, opts.Available)
	rank(all, &opts)
	slices.SortFunc(all, func(a, b key) int { return scaleIn(&a, &b) })
	return podsOf(all)
}

func scaleIn(a, b *key) int {
	return cmp.Or(
		falseFirst(a.assigned, b.assigned),
		cmp.Compare(a.phase, b.phase),
		falseFirst(a.available, b.available),
		falseFirst(a.ready, b.ready),
		cmp.Compare(a.cost, b.cost),
		cmp.Compare(b.rank, a.rank),
		age(a, b),
	)
}

// rank sets the ranks of the pods. Within a topology, the pod to keep longest has the lowest rank and
// each pod to delete before it one more, so that pods are taken from the topologies in turns and the
// rest stays balanced.
func rank(all []key, opts *ScaleInOptions) {
	if len(opts.TopologyKeys) == 0 {
		byNode := group(all, func(k *key) string { return k.pod.Spec.NodeName })
		for _, same := range byNode {
			within(same, func(k *key, position int) { k.rank = float64(position) })
		}
		return
	}
	ranks := make([]float64, len(all))
	position := make(map[*key]int, len(all))
	for i := range all {
		position[&all[i]] = i
	}
	for _, topology := range opts.TopologyKeys {
		groups := group(all, func(k *key) string { return opts.Nodes[k.pod.Spec.NodeName][topology] })
		// A constraint over many topologies weighs more, as in the scheduler.
		weight := math.Log(float64(len(groups) + 2))
		for _, same := range groups {
			within(same, func(k *key, n int) { ranks[position[k]] += float64(n+1) * weight })
		}
	}
	for i := range all {
		all[i].rank = ranks[i]
	}
}

// group returns the keys by what the function returns, without those for which it returns "".
func group(all []key, of func(*key) string) map[string][]*key {
	groups := make(map[string][]*key)
	for i := range all {
		if name := of(&all[i]); name != "" {
			groups[name] = append(groups[name], &all[i])
		}
	}
	return groups
}

// within calls set for each pod of one topology with the number of pods to keep longer than it.
func within(same []*key, set func(k *key, position int)) {
	slices.SortFunc(same, func(a, b *key) int { return scaleIn(b, a) })
	for i, k := range same {
		set(k, i)
	}
}

func podsOf(all []key) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(all))
	for i := range all {
		pods[i] = all[i].pod
	}
	return pods
}
