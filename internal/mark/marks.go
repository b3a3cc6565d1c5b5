// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mark says what one pod carries: the labels, annotations and conditions that
// the states of its planned probes call for, and those that Seamark owns on it now. It
// is a pure function of the pod's plan and the reported states.
//
// What holds for every pod:
//   - a probe with no state makes no marks, but the keys it declares are taken;
//   - a key belongs to one probe, the first that declares it in the order of marker
//     names and of probes in a marker, in all its states: nothing flaps between two;
//   - the desired marks are complete: what is not among them comes off.
package mark

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is what sort of mark a key names.
type Kind string

// The kinds of marks.
const (
	KindCondition  Kind = "condition"
	KindLabel      Kind = "label"
	KindAnnotation Kind = "annotation"
)

// Key names one mark of a pod.
type Key struct {
	// Kind is the sort of mark.
	Kind Kind
	// Name is the label's or annotation's key, or the condition's type.
	Name string
}

// String returns the kind and the name, for people.
func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Condition is a pod condition made from a probe's state. Its reason stays empty.
type Condition struct {
	// Type is the condition's type, as the probe declares it.
	Type string
	// Status is True for Succeeded, False for Failed, Unknown for Unknown. Empty means
	// that somebody else has set it.
	Status corev1.ConditionStatus
	// Message is what the probe said last.
	Message string
	// LastProbeTime and LastTransitionTime are the state's, in whole seconds. Zero
	// means that the state has none.
	LastProbeTime, LastTransitionTime metav1.Time
}

func (c Condition) equal(other Condition) bool {
	return c.Type == other.Type && c.Status == other.Status && c.Message == other.Message &&
		sameSecond(c.LastProbeTime, other.LastProbeTime) &&
		sameSecond(c.LastTransitionTime, other.LastTransitionTime)
}

// sameSecond compares as the API server keeps times: without fractions.
func sameSecond(a, b metav1.Time) bool {
	return a.Truncate(time.Second).Equal(b.Truncate(time.Second))
}

// Marks are all marks of one pod. The zero value is a pod without any.
type Marks struct {
	// Labels and Annotations are the marks among the pod's metadata, by key.
	Labels, Annotations map[string]string
	// Conditions are the marks among the pod's conditions, by type.
	Conditions map[string]Condition
}

// IsEmpty tells whether there are no marks.
func (m Marks) IsEmpty() bool {
	return len(m.Labels)+len(m.Annotations)+len(m.Conditions) == 0
}

// Equal tells whether both are the same marks with the same values. Times are
// compared in whole seconds.
func (m Marks) Equal(other Marks) bool {
	return maps.Equal(m.Labels, other.Labels) &&
		maps.Equal(m.Annotations, other.Annotations) &&
		maps.EqualFunc(m.Conditions, other.Conditions, Condition.equal)
}

// Has tells whether the key is among the marks.
func (m Marks) Has(key Key) bool {
	var found bool
	switch key.Kind {
	case KindLabel:
		_, found = m.Labels[key.Name]
	case KindAnnotation:
		_, found = m.Annotations[key.Name]
	case KindCondition:
		_, found = m.Conditions[key.Name]
	}
	return found
}

// Keys returns the keys of all marks, ordered by kind and name.
func (m Marks) Keys() []Key {
	keys := make([]Key, 0, len(m.Labels)+len(m.Annotations)+len(m.Conditions))
	for name := range m.Labels {
		keys = append(keys, Key{KindLabel, name})
	}
	for name := range m.Annotations {
		keys = append(keys, Key{KindAnnotation, name})
	}
	for name := range m.Conditions {
		keys = append(keys, Key{KindCondition, name})
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// Only returns the marks whose keys are among those given.
func (m Marks) Only(keys map[Key]bool) Marks {
	var kept Marks
	for _, key := range m.Keys() {
		if !keys[key] {
			continue
		}
		switch key.Kind {
		case KindLabel:
			kept.setLabel(key.Name, m.Labels[key.Name])
		case KindAnnotation:
			kept.setAnnotation(key.Name, m.Annotations[key.Name])
		case KindCondition:
			kept.setCondition(m.Conditions[key.Name])
		}
	}
	return kept
}

func (m *Marks) setLabel(key, value string) {
	if m.Labels == nil {
		m.Labels = make(map[string]string)
	}
	m.Labels[key] = value
}

func (m *Marks) setAnnotation(key, value string) {
	if m.Annotations == nil {
		m.Annotations = make(map[string]string)
	}
	m.Annotations[key] = value
}

func (m *Marks) setCondition(condition Condition) {
	if m.Conditions == nil {
		m.Conditions = make(map[string]Condition)
	}
	m.Conditions[condition.Type] = condition
}

func compareKeys(a, b Key) int {
	return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
}
