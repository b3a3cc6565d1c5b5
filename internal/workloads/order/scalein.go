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
	ranked := keys(pods, opts.Available)
	rank(ranked, &opts)
	slices.SortFunc(ranked, func(a, b key) int { return scaleIn(&a, &b) })
	return podsOf(ranked)
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
// each pod to delete before it a higher one, so that pods are taken from the topologies in turns and the
// rest stays balanced.
func rank(all []key, opts *ScaleInOptions) {
	topologies := []func(node string) string{func(node string) string { return node }}
	if len(opts.TopologyKeys) > 0 {
		topologies = nil
	}
	for _, label := range opts.TopologyKeys {
		topologies = append(topologies, func(node string) string { return opts.Nodes[node][label] })
	}
	ranks := make([]float64, len(all))
	for _, topology := range topologies {
		groups := make(map[string][]int)
		for i := range all {
			if name := topology(all[i].pod.Spec.NodeName); name != "" {
				groups[name] = append(groups[name], i)
			}
		}
		// A constraint over many topologies weighs more, as in the scheduler.
		weight := math.Log(float64(len(groups) + 2))
		for _, same := range groups {
			slices.SortFunc(same, func(a, b int) int { return scaleIn(&all[b], &all[a]) })
			for n, i := range same {
				ranks[i] += float64(n+1) * weight
			}
		}
	}
	for i := range all {
		all[i].rank = ranks[i]
	}
}

func podsOf(all []key) []*corev1.Pod {
	pods := make([]*corev1.Pod, len(all))
	for i := range all {
		pods[i] = all[i].pod
	}
	return pods
}
