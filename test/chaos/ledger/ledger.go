// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger accounts for the end of every pod: each deletion needs a rule that allows it.
package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VersionLabel is the label of a pod with the version of its set's template, which the test increases.
const VersionLabel = "chaos.seamark.dev/version"

// Goal is what the test wants of a set.
type Goal struct {
	Replicas, MaxUnavailable int
	// Version is the version of the template.
	Version string
	// Ordered is whether a scale-down removes the highest ordinals, as of a StatefulSet.
	Ordered bool
}

// set is a set since the last Settle.
type set struct {
	Goal
	// low is the smallest number of replicas that the test wanted.
	low int
	// surplus is how many pods of the current template a scale-down may still delete.
	surplus int
}

// Ledger receives the edits of a test, before it makes them, and the events of all pods in the order of the API
// server. It is for concurrent use.
type Ledger struct {
	mu    sync.Mutex
	sets  map[string]*set
	alive map[types.UID]*corev1.Pod
	// expected are pods that the test deletes.
	expected map[types.UID]bool
	// lost are nodes whose pods the cluster may delete.
	lost map[string]bool
	// causes counts the deletions by their rules.
	causes     map[string]int
	violations []string
}

// New returns a ledger without sets and pods.
func New() *Ledger {
	return &Ledger{
		sets: map[string]*set{}, alive: map[types.UID]*corev1.Pod{}, expected: map[types.UID]bool{},
		lost: map[string]bool{}, causes: map[string]int{},
	}
}

// Want records the goal of a set, which is named kind/name.
func (l *Ledger) Want(name string, goal Goal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, exists := l.sets[name]
	if !exists {
		l.sets[name] = &set{Goal: goal, low: goal.Replicas}
		return
	}
	known.surplus += max(0, known.Replicas-goal.Replicas)
	known.low = min(known.low, goal.Replicas)
	known.Goal = goal
}

// Expect allows the deletion of a pod.
func (l *Ledger) Expect(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected[uid] = true
}

// Lose allows the cluster to delete the pods of a node until Settle.
func (l *Ledger) Lose(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[node] = true
}

// Settle records that every set has reached its goal: no edit before justifies a later deletion.
func (l *Ledger) Settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = map[string]bool{}
	for _, s := range l.sets {
		s.low, s.surplus = s.Replicas, 0
	}
}

// See records the state of a pod. gone is whether it no longer exists.
func (l *Ledger) See(pod *corev1.Pod, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.alive[pod.UID]
	if ending := gone || pod.DeletionTimestamp != nil; !ending {
		l.alive[pod.UID] = pod
		return
	}
	if before == nil {
		return // It was accounted for when it began to terminate.
	}
	delete(l.alive, pod.UID)
	cause, problem := l.evaluate(before)
	l.causes[cause]++
	if problem != "" {
		l.violations = append(l.violations, fmt.Sprintf("pod %s with the UID %s was deleted: %s", before.Name, before.UID, problem))
	}
}

// Alive returns the pods that do not terminate, by name.
func (l *Ledger) Alive() []*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.alive), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

// Causes returns the number of deletions by rule.
func (l *Ledger) Causes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[string]int, len(l.causes))
	for cause, n := range l.causes {
		counts[cause] = n
	}
	return counts
}

// Violations returns the deletions that no rule allows, in their order.
func (l *Ledger) Violations() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.violations...)
}

// The rules that allow a deletion, and that for the others.
const (
	byTest     = "test"
	byNode     = "lost node"
	ofEnded    = "ended pod"
	byUpdate   = "update"
	ofUnready  = "update of an unready pod"
	byScale    = "scale-down"
	notAllowed = "no rule"
)

// evaluate returns the rule that allows the deletion of a pod that has just left alive, and why none does.
func (l *Ledger) evaluate(pod *corev1.Pod) (cause, problem string) {
	switch {
	case l.expected[pod.UID]:
		return byTest, ""
	case l.lost[pod.Spec.NodeName]:
		return byNode, ""
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return ofEnded, ""
	}
	owner := ownerOf(pod)
	s, known := l.sets[owner]
	if !known {
		return notAllowed, "it has no set and the test did not delete it"
	}
	if version := pod.Labels[VersionLabel]; version != s.Version {
		if !ready(pod) {
			// It is not available: maxUnavailable does not protect it.
			return ofUnready, ""
		}
		if left, floor := l.left(owner), s.low-s.MaxUnavailable; left < floor {
			return notAllowed, fmt.Sprintf("%s has %d pods left of %d, and maxUnavailable is %d", owner, left, s.low, s.MaxUnavailable)
		}
		return byUpdate, ""
	}
	if s.surplus == 0 {
		return notAllowed, fmt.Sprintf("%s has %d replicas, and the pod has the current template", owner, s.Replicas)
	}
	if ordinal := ordinalOf(pod.Name); s.Ordered && ordinal < s.low {
		return notAllowed, fmt.Sprintf("%s was never scaled below %d, and the ordinal of the pod is %d", owner, s.low, ordinal)
	}
	s.surplus--
	return byScale, ""
}

// left returns how many pods of the set do not terminate.
func (l *Ledger) left(owner string) int {
	n := 0
	for _, pod := range l.alive {
		if ownerOf(pod) == owner {
			n++
		}
	}
	return n
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ownerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

// ordinalOf returns the number at the end of a name, -1 if there is none.
func ordinalOf(name string) int {
	ordinal, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return -1
	}
	return ordinal
}
