// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestSetsOf(t *testing.T) {
	t.Parallel()
	set := func(namespace, kind, name string, problem, complete bool) model.Set {
		return model.Set{SetID: model.SetID{Namespace: namespace, Kind: kind, Name: name}, Problem: problem, Complete: complete}
	}
	var all []model.Set
	for i := range model.MaxSets {
		all = append(all, set("b", "CloneSet", fmt.Sprintf("web-%04d", i), false, true))
	}
	all = append(all, set("b", "StatefulSet", "db", false, false), set("b", "DaemonSet", "log", false, false), set("c", "CloneSet", "bad", true, false))
	got := model.SetsOf(all, "note")
	var first []string
	for i := range 4 {
		first = append(first, got.Sets[i].String())
	}
	expect.Equal(t, "first sets", []string{"CloneSet c/bad", "DaemonSet b/log", "StatefulSet b/db", "CloneSet b/web-0000"}, first)
	expect.Equal(t, "numbers and note", []any{model.MaxSets, model.MaxSets + 3, "note"}, []any{len(got.Sets), got.Total, got.Note})
}

func TestEventsOf(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	event := func(uid, reason string, last metav1.Time, count int32) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, Type: "Normal", Reason: reason, LastTimestamp: last, Count: count}
	}
	series := event("a", "Series", metav1.Time{}, 0)
	series.EventTime = metav1.NewMicroTime(time.Unix(10, 0))
	series.Series = &corev1.EventSeries{Count: 4, LastObservedTime: metav1.NewMicroTime(time.Unix(50, 0))}
	long := event("a", strings.Repeat("R", 500), at(20), 2)
	long.Message = strings.Repeat("m", 5000)
	got := model.EventsOf([]corev1.Event{event("a", "Old", at(10), 1), series, event("earlier", "Other", at(60), 1), long}, "a")
	expect.Equal(t, "events", []model.Event{
		{Type: "Normal", Reason: "Series", Count: 4, Last: time.Unix(50, 0).UTC()},
		{Type: "Normal", Reason: strings.Repeat("R", 128), Message: strings.Repeat("m", 997) + "...", Count: 2, Last: time.Unix(20, 0).UTC()},
		{Type: "Normal", Reason: "Old", Count: 1, Last: time.Unix(10, 0).UTC()},
	}, got)
	var many []corev1.Event
	for i := range int64(100) {
		many = append(many, event("a", "Many", at(i), 1))
	}
	got = model.EventsOf(many, "a")
	expect.Equal(t, "number and newest event", []any{model.MaxEvents, time.Unix(99, 0).UTC()}, []any{len(got), got[0].Last})
}
