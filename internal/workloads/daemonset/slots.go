// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/objectversion"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/owner"
)

// Cache is the cache whose events a Slots follows. Its objects must not be modified.
type Cache struct {
	// Nodes returns all nodes, and Pods those that the set controls.
	Nodes func() []*corev1.Node
	Pods  func(set owner.Key) []*corev1.Pod
	// Version returns the resource version of the pods.
	Version func() string
}

// Slots are the slots of all sets. It implements planning.Slots.
type Slots struct {
	cache Cache

	mu sync.Mutex
	// sets are the sets that were planned. Events of others are ignored: the first step of a set reads the cache.
	sets map[types.UID]*state
	uids map[types.NamespacedName]types.UID
	// version is the resource version up to which the pods are followed.
	version string
}

// NewSlots returns the slots of sets whose pods and nodes are in the cache.
func NewSlots(cache Cache) *Slots {
	return &Slots{cache: cache, sets: map[types.UID]*state{}, uids: map[types.NamespacedName]types.UID{}}
}

// Pod implements planning.Slots.
func (e *Slots) Pod(before, after *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	previous, current := e.owner(before), e.owner(after)
	if previous != nil && (previous != current || after == nil || before.UID != after.UID) {
		previous.drop(before)
	}
	if current != nil {
		if previous == current && before.Spec.NodeName != after.Spec.NodeName {
			current.drop(before)
		}
		current.put(after)
	}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod != nil {
			e.version = objectversion.Newer(e.version, pod.ResourceVersion)
		}
	}
}

// owner returns the state of the set that controls the pod, nil if it has none.
func (e *Slots) owner(pod *corev1.Pod) *state {
	if pod == nil {
		return nil
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return nil
	}
	if st := e.sets[controller.UID]; st != nil && owner.Named(pod, controller) == st.owner {
		return st
	}
	return nil
}

// Node implements planning.Slots. A change that does not matter ends with one comparison, however many sets there are:
// the kubelet of each node reports its state every few minutes, and more often while images are pulled.
func (e *Slots) Node(before, after *corev1.Node) []types.NamespacedName {
	if before != nil && after != nil && before.Spec.Unschedulable == after.Spec.Unschedulable && nodefit.Joins(before) == nodefit.Joins(after) &&
		maps.Equal(before.Labels, after.Labels) && slices.Equal(before.Spec.Taints, after.Spec.Taints) {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var keys []types.NamespacedName
	for _, st := range e.sets {
		if st.config == nil {
			continue // The first step reads all nodes.
		}
		name, facts := "", nodeFacts{}
		if after != nil {
			name, facts = after.Name, st.config.node(after)
		} else {
			name = before.Name
		}
		if s := st.slot(name); s.facts != facts {
			s.facts = facts
			st.touch(s)
			keys = append(keys, st.key)
		}
	}
	return keys
}

// Version implements planning.Slots.
func (e *Slots) Version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version
}

// Unseen implements planning.Slots.
func (e *Slots) Unseen(set types.UID, deleted map[types.UID]bool) map[types.UID]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if st := e.sets[set]; st != nil {
		return st.unseen(deleted)
	}
	return nil
}

// Size implements planning.Slots.
func (e *Slots) Size(set types.UID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if st := e.sets[set]; st != nil {
		return len(st.slots)
	}
	return 0
}

// Forget implements planning.Slots.
func (e *Slots) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sets, e.uids[key])
	delete(e.uids, key)
}

// state returns the state of the set. The first time, it reads the pods from the cache, whose events it follows from
// then on: those that were handled before are in the cache, and those that follow may be known already.
func (e *Slots) state(set *v1alpha1.DaemonSet) *state {
	if st := e.sets[set.UID]; st != nil {
		return st
	}
	key := client.ObjectKeyFromObject(set)
	delete(e.sets, e.uids[key])
	st := newState(key, owner.Of(Kind(), set))
	version := e.cache.Version()
	for _, pod := range e.cache.Pods(st.owner) {
		st.put(pod)
	}
	if len(e.sets) == 0 {
		e.version = version
	}
	e.sets[set.UID], e.uids[key] = st, set.UID
	return st
}
