// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/btree"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
)

// Check compares what the events have made of the slots of a set with what is computed from all its pods and all nodes:
// the pods of each slot, its view, the counts and the queues.
func (e *Slots) Check(set types.UID, pods []*corev1.Pod, nodes []*corev1.Node, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.sets[set]
	if st == nil || st.config == nil {
		return nil
	}
	for _, s := range st.refresh(now) {
		st.touch(s) // The next step visits them.
	}
	want := newState(st.key, st.owner)
	want.configure(st.generation, st.config, st.placement, func() []*corev1.Node { return nodes })
	for _, pod := range pods {
		want.put(pod)
	}
	for name, s := range want.slots {
		if known := st.slots[name]; known != nil { // What is known of failures is in no object.
			s.failures, s.retry = known.failures, known.retry
		}
	}
	want.refresh(now)
	for name, s := range want.slots {
		known := st.slots[name]
		if known == nil {
			return fmt.Errorf("node %q has no slot", name)
		}
		if known.facts != s.facts || known.view != s.view {
			return fmt.Errorf("slot of node %q is %+v %+v, want %+v %+v", name, known.facts, known.view, s.facts, s.view)
		}
		uids := func(s *slot) []types.UID {
			all := make([]types.UID, len(s.pods))
			for i, pod := range s.pods {
				all[i] = pod.UID + types.UID("@"+pod.ResourceVersion)
			}
			slices.Sort(all)
			return all
		}
		if !slices.Equal(uids(known), uids(s)) {
			return fmt.Errorf("slot of node %q has pods %v, want %v", name, uids(known), uids(s))
		}
	}
	if len(st.slots) != len(want.slots) || st.counts != want.counts || fmt.Sprint(st.hashes) != fmt.Sprint(want.hashes) {
		return fmt.Errorf("%d slots, counts %+v, hashes %v, want %d, %+v, %v", len(st.slots), st.counts, st.hashes, len(want.slots), want.counts, want.hashes)
	}
	names := func(tree *btree.BTreeG[*slot]) (all []string) {
		if tree != nil {
			tree.Ascend(func(s *slot) bool { all = append(all, s.node); return true })
		}
		return all
	}
	for class := range classes {
		if got, want := names(st.queues[class]), names(want.queues[class]); !slices.Equal(got, want) {
			return fmt.Errorf("queue %d is %v, want %v", class, got, want)
		}
	}
	got, down := names(st.down), names(want.down)
	slices.Sort(got)
	slices.Sort(down)
	if !slices.Equal(got, down) {
		return fmt.Errorf("unavailable nodes are %v, want %v", got, down)
	}
	return nil
}

// FitOf returns how the nodes fit the set, and whether its update reaches them.
func (e *Slots) FitOf(set types.UID, node *corev1.Node) (nodefit.Fit, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	facts := e.sets[set].config.node(node)
	return facts.fit, facts.reached
}
