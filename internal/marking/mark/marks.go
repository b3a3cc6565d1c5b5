// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mark computes the marks of a pod: the labels, annotations and conditions that
// the states of its planned probes require, and those that Seamark owns on it now. It is
// pure: the result depends only on the pod, its plan and the reported states.
//
// Invariants:
//   - A probe without a state sets no marks, but it reserves the keys that it declares.
//   - A key belongs to one probe in all states: the first that declares it, by marker name
//     and probe order. A key therefore never alternates between two probes.
//   - The desired marks are complete: a mark that is not among them is removed.
package mark

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Kind is the kind of a mark.
type Kind string

// The kinds of marks.
const (
	KindCondition  Kind = "condition"
	KindLabel      Kind = "label"
	KindAnnotation Kind = "annotation"
)

// Key identifies one mark of a pod.
type Key struct {
	// Kind is the kind of the mark.
	Kind Kind
	// Name is the key of the label or annotation, or the type of the condition.
	Name string
}

// Label returns the key of a label.
func Label(name string) Key { return Key{KindLabel, name} }

// Annotation returns the key of an annotation.
func Annotation(name string) Key { return Key{KindAnnotation, name} }

// ConditionType returns the key of a condition.
func ConditionType(name string) Key { return Key{KindCondition, name} }

// String returns the kind and the name, for messages.
func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// In returns the pod's value of a label or annotation, or its status of a condition, and whether the pod has it.
func (k Key) In(pod *corev1.Pod) (value string, found bool) {
	switch k.Kind {
	case KindLabel:
		value, found = pod.Labels[k.Name]
	case KindAnnotation:
		value, found = pod.Annotations[k.Name]
	case KindCondition:
		if i := slices.IndexFunc(pod.Status.Conditions, hasType(k.Name)); i >= 0 {
			value, found = string(pod.Status.Conditions[i].Status), true
		}
	}
	return value, found
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
}

// Value is the value of one mark. Which field it uses depends on the kind of the key.
type Value struct {
	// Text is the value of a label or annotation.
	Text string
	// Condition is the value of a condition.
	Condition Condition
}

// String returns the value of a label or annotation, or the status of a condition.
func (v Value) String() string { return v.Text + string(v.Condition.Status) }

func (v Value) equal(other Value) bool {
	return v.Text == other.Text && v.Condition.equal(other.Condition)
}

// Condition is the content of a pod condition that is made from a probe's state.
type Condition struct {
	// Status is True for Succeeded, False for Failed, Unknown for Unknown. It is empty if
	// another manager set it.
	Status corev1.ConditionStatus
	// Reason is why the state counts as Unknown: v1alpha1.ReasonStale or v1alpha1.ReasonClaimLost. It is
	// empty if the state was reported.
	Reason string
	// Message is the probe's last message.
	Message string
	// LastProbeTime and LastTransitionTime are those of the state, in whole seconds. Zero
	// means that the state has none.
	LastProbeTime, LastTransitionTime metav1.Time
}

func (c Condition) equal(other Condition) bool {
	return c.Status == other.Status && c.Reason == other.Reason && c.Message == other.Message &&
		sameSecond(c.LastProbeTime, other.LastProbeTime) &&
		sameSecond(c.LastTransitionTime, other.LastTransitionTime)
}

// sameSecond ignores fractions of seconds, which the API server does not store.
func sameSecond(a, b metav1.Time) bool {
	return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}

// Marks are the marks of one pod.
type Marks map[Key]Value

// Equal reports whether both have the same keys and values. It compares times in whole
// seconds.
func (m Marks) Equal(other Marks) bool { return maps.EqualFunc(m, other, Value.equal) }

// Has reports whether the key is among the marks.
func (m Marks) Has(key Key) bool {
	_, found := m[key]
	return found
}

// Keys returns the keys of all marks, ordered by kind and name.
func (m Marks) Keys() []Key { return slices.SortedFunc(maps.Keys(m), compareKeys) }

// Names returns the sorted names of the marks of one kind.
func (m Marks) Names(kind Kind) []string {
	var names []string
	for key := range m {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Differences returns the keys that are not among the owned marks or have another value there, and
// the owned keys that are not desired, each ordered by kind and name.
func Differences(owned, desired Marks) (set, removed []Key) {
	for _, key := range desired.Keys() {
		if value, found := owned[key]; !found || !value.equal(desired[key]) {
			set = append(set, key)
		}
	}
	for _, key := range owned.Keys() {
		if !desired.Has(key) {
			removed = append(removed, key)
		}
	}
	return set, removed
}

// Only returns the marks whose keys are in the set.
func (m Marks) Only(keys sets.Set[Key]) Marks { return m.filter(keys.Has) }

// filter returns the marks whose keys are to be kept.
func (m Marks) filter(keep func(Key) bool) Marks {
	kept := make(Marks)
	for key, value := range m {
		if keep(key) {
			kept[key] = value
		}
	}
	return kept
}
