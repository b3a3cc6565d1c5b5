// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// Event is an event about the set. Those that differ only in their pods can become one: the write of
// an event costs the API server nearly as much as that of a pod, and recorders drop events that are
// too many.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a CamelCase word.
	Reason string
	// Sentence is the message of an event that is not about pods.
	Sentence string
	// One is the format of the message for the name of one pod, Many for the number of pods and their
	// names.
	One, Many string
	// Pods are the names of pods. Only the first ones are in the message.
	Pods []string
}

// PodEvent returns a normal event about pods.
func PodEvent(reason, one, many string, pods ...string) Event {
	// AddEvent adds pods: the names of the caller must not change with them.
	return Event{Type: corev1.EventTypeNormal, Reason: reason, One: one, Many: many, Pods: slices.Clip(pods)}
}

// PodEnded returns the event that a pod has ended and is deleted, with the reason of its status, such as Evicted. It is
// a warning if the pod has failed.
func PodEnded(pod *corev1.Pod) Event {
	reason := pod.Status.Reason
	isWord := regexp.MustCompile(`^[A-Za-z]{1,64}$`).MatchString
	if !isWord(reason) {
		reason = string(pod.Status.Phase)
	}
	e := PodEvent("PodEnded", "Pod %s has ended: "+reason+". It is deleted.", "%d pods have ended: "+reason+". They are deleted: %s.", pod.Name)
	if pod.Status.Phase == corev1.PodFailed {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

// StartedInPlace returns the event that the update of a pod in place to the revision has started.
func StartedInPlace(pod, revision string) Event {
	to := " in place to revision " + revision
	return PodEvent("SuccessfulUpdatePodInPlace", "Started to update pod %s"+to+".", "Started to update %d pods"+to+": %s.", pod)
}

// Message returns the message.
func (e *Event) Message() string {
	switch {
	case len(e.Pods) == 0:
		return e.Sentence
	case len(e.Pods) == 1:
		return fmt.Sprintf(e.One, e.Pods[0])
	default:
		return fmt.Sprintf(e.Many, len(e.Pods), text.List(e.Pods, text.MaxNames))
	}
}

// Of returns the event about those of its pods that are in the set, without pods if none is.
func (e *Event) Of(pods sets.Set[string]) Event {
	part := *e
	part.Pods = nil
	for _, pod := range e.Pods {
		if pods.Has(pod) {
			part.Pods = append(part.Pods, pod)
		}
	}
	return part
}

// AddEvent adds an event of a set: its pods become those of an earlier one that differs only in them.
func AddEvent(events []Event, e Event) []Event {
	for i := range events {
		if event := &events[i]; len(e.Pods) > 0 && len(event.Pods) > 0 &&
			event.Type == e.Type && event.Reason == e.Reason && event.One == e.One && event.Many == e.Many {
			event.Pods = append(event.Pods, e.Pods...)
			return events
		}
	}
	return append(events, e)
}

// SetCondition is a condition of a set, of any kind.
type SetCondition struct {
	Type, Reason, Message string
	Status                corev1.ConditionStatus
	// Updated is when any other field changed last, Transitioned when the status did.
	Updated, Transitioned metav1.Time
}

// Conditions are the conditions of a set, at most one of each type.
type Conditions []SetCondition

// ConvertConditions converts conditions to those of another type.
func ConvertConditions[A, B any](all []A, convert func(A) B) []B {
	var converted []B
	for _, c := range all {
		converted = append(converted, convert(c))
	}
	return converted
}

// Find returns the condition, nil if there is none.
func (c Conditions) Find(conditionType string) *SetCondition {
	i := slices.IndexFunc(c, func(each SetCondition) bool { return each.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &c[i]
}

// Put sets the condition. Its times are set.
func (c *Conditions) Put(wanted SetCondition, now time.Time) {
	wanted.Updated, wanted.Transitioned = metav1.NewTime(now), metav1.NewTime(now)
	old := c.Find(wanted.Type)
	switch {
	case old == nil:
		*c = append(*c, wanted)
		return
	case old.Status == wanted.Status && old.Reason == wanted.Reason && old.Message == wanted.Message:
		return
	case old.Status == wanted.Status:
		wanted.Transitioned = old.Transitioned
	}
	*old = wanted
}

// Remove removes the condition.
func (c *Conditions) Remove(kind string) {
	*c = slices.DeleteFunc(*c, func(each SetCondition) bool { return each.Type == kind })
}

// Set sets the condition to True with the reason and the message. If there is no message, it sets the
// condition to False if it was True for this reason.
func (c *Conditions) Set(conditionType, reason, message string, now time.Time) {
	wanted := SetCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	if message == "" {
		if old := c.Find(conditionType); old == nil || old.Status != corev1.ConditionTrue || old.Reason != reason {
			return
		}
		wanted.Status, wanted.Reason = corev1.ConditionFalse, "Recovered"
	}
	c.Put(wanted, now)
}

// True reports whether the condition is True.
func (c Conditions) True(conditionType string) bool {
	found := c.Find(conditionType)
	return found != nil && found.Status == corev1.ConditionTrue
}

// Message returns the message of the first of the conditions that is True, empty if none is.
func (c Conditions) Message(kinds ...string) string {
	for _, kind := range kinds {
		if c.True(kind) {
			return cmp.Or(c.Find(kind).Message, kind)
		}
	}
	return ""
}

// first returns the message for the first failure of the kind, empty if there is none.
func first(failures []Failure, update bool) string {
	i := slices.IndexFunc(failures, func(f Failure) bool { return f.Update == update && !f.Pull })
	if i < 0 {
		return ""
	}
	return failures[i].Error()
}
