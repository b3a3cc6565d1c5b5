// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// SetID identifies a set, which is an object of apps.kruise.io that runs pods and updates them.
type SetID struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
}

// String returns KIND NAMESPACE/NAME.
func (id SetID) String() string { return id.Kind + " " + id.Namespace + "/" + id.Name }

// Set is a set with its rollout.
type Set struct {
	SetID
	// Revision is what its pods are updated to, at most 253 bytes. It is empty if the controller has not set it.
	Revision string `json:"revision"`
	// Desired is the number of pods that it should have, Updated how many have the revision, and Available how many are
	// available.
	Desired   int32 `json:"desired"`
	Updated   int32 `json:"updated"`
	Available int32 `json:"available"`
	// Phase and Reason are CamelCase words, and Message a sentence of at most 1,000 bytes: where the rollout is, and why.
	Phase   string `json:"phase"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Problem is whether somebody should look at the rollout.
	Problem bool `json:"problem,omitempty"`
	// Complete is whether nothing is waited for.
	Complete bool `json:"complete,omitempty"`
}

// MaxSets is the maximum number of sets on the page.
const MaxSets = 1000

// Sets is a part of a stream: the sets of the scope.
type Sets struct {
	// Sets are at most MaxSets: first those with problems, then those whose rollout is not complete, each part ordered by
	// namespace, kind and name.
	Sets []Set `json:"sets"`
	// Total is the number of sets.
	Total int `json:"total"`
	// Note is why sets are missing. It is empty if the user may read all kinds.
	Note string `json:"note,omitempty"`
}

// SetsOf returns the sets in the order of the page, without those that it has no room for.
func SetsOf(all []Set, note string) Sets {
	rank := func(s *Set) int {
		switch {
		case s.Problem:
			return 0
		case !s.Complete:
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(a, b Set) int {
		return cmp.Or(rank(&a)-rank(&b), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return Sets{Sets: append([]Set{}, all[:min(len(all), MaxSets)]...), Total: len(all), Note: note}
}

// SetDetails is what the page shows of a chosen set besides its rollout.
type SetDetails struct {
	// Waits are the first MaxWaits pods that are not available, first those that a user has to do something about, then by name.
	// WaitCount is the number of all.
	Waits     []PodWait `json:"waits"`
	WaitCount int       `json:"waitCount"`
	// PodsNote is why the pods are not known. It is empty if they are.
	PodsNote string `json:"podsNote,omitempty"`
	// Events are the newest ones of the set.
	Events []Event `json:"events"`
	// Note is why events are missing. It is empty if all are known.
	Note string `json:"note,omitempty"`
}

// MaxWaits is the maximum number of pods in the details of a set.
const MaxWaits = 20

// PodWait is a pod of a set that is not available.
type PodWait struct {
	// Name is the name of the pod, and Why completes the sentence "the pod ...", at most 1,000 bytes.
	Name string `json:"name"`
	Why  string `json:"why"`
	// Problem is whether a user has to do something.
	Problem bool `json:"problem,omitempty"`
}

// Event is an event of an object, or several equal ones.
type Event struct {
	// Type is Normal or Warning, and Reason a CamelCase word. Both have at most 128 bytes.
	Type   string `json:"type"`
	Reason string `json:"reason"`
	// Message has at most 1,000 bytes.
	Message string `json:"message"`
	// Count is how often it occurred, at least 1, and Last when it occurred last.
	Count int32     `json:"count"`
	Last  time.Time `json:"last"`
}

// MaxEvents is the maximum number of events of an object.
const MaxEvents = 20

// EventsOf returns the newest events of the object, at most MaxEvents, the newest first.
func EventsOf(events []corev1.Event, object types.UID) []Event {
	found := []Event{}
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID != object {
			continue
		}
		const word = 128
		shown := Event{
			Type: text.Truncate(e.Type, word), Reason: text.Truncate(e.Reason, word), Message: text.Message(e.Message), Count: max(e.Count, 1),
			Last: slices.MaxFunc([]time.Time{e.LastTimestamp.Time, e.FirstTimestamp.Time, e.EventTime.Time}, time.Time.Compare).UTC(),
		}
		if s := e.Series; s != nil {
			shown.Count = max(shown.Count, s.Count)
			shown.Last = slices.MaxFunc([]time.Time{shown.Last, s.LastObservedTime.UTC()}, time.Time.Compare)
		}
		found = append(found, shown)
	}
	slices.SortStableFunc(found, func(a, b Event) int { return b.Last.Compare(a.Last) })
	return found[:min(len(found), MaxEvents)]
}

// Namespaces are those that the user may see.
type Namespaces struct {
	// Whole is whether the user may read all namespaces, so that the page can show all of them.
	Whole bool `json:"whole"`
	// Names are the namespaces to choose from, in order. There can be others.
	Names []string `json:"names"`
	// Shown are those that the page shows if none is chosen. It is empty if Whole is true.
	Shown []string `json:"shown,omitempty"`
}
