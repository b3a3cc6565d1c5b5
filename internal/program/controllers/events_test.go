// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMarkerUpdates(t *testing.T) {
	before := builders.Marker("ns", "web").Build()
	recreated := before.DeepCopy()
	recreated.UID = "later"
	relabelled := before.DeepCopy()
	relabelled.Labels = map[string]string{"team": "a"}
	cases := map[string]struct {
		after *v1alpha1.PodProbeMarker
		want  []string
	}{
		"metadata only":   {after: relabelled},
		"body published":  {after: builders.Marker("ns", "web").Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, "true").Build(), want: []string{"game"}},
		"messages":        {after: builders.Marker("ns", "web").Annotation(v1alpha1.MessageUpdatesAnnotationKey, "Limited").Build(), want: []string{"game"}},
		"edited spec":     {after: builders.Marker("ns", "web").Generation(2).Build(), want: []string{"game"}},
		"being deleted":   {after: builders.Marker("ns", "web").Deleting().Build(), want: []string{"game"}},
		"recreated":       {after: recreated, want: []string{"game"}},
		"edited selector": {after: builders.Marker("ns", "web").Selector("app", "db").Generation(2).Build(), want: []string{"db", "game"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			events := controllers.MarkerEvents(func(_ context.Context, _ controllers.Queue, marker *v1alpha1.PodProbeMarker) {
				got = append(got, marker.Spec.Selector.MatchLabels["app"])
			})
			events.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]{ObjectOld: before, ObjectNew: tc.after}, nil)
			expect.Equal(t, "selectors of changed markers", tc.want, got)
		})
	}
}

func TestMarkerEventsIgnoreMarkersThatExistAtTheStart(t *testing.T) {
	for _, initial := range []bool{true, false} {
		called := false
		events := controllers.MarkerEvents(func(context.Context, controllers.Queue, *v1alpha1.PodProbeMarker) { called = true })
		events.Create(t.Context(), event.TypedCreateEvent[*v1alpha1.PodProbeMarker]{
			Object: builders.Marker("ns", "web").Build(), IsInInitialList: initial,
		}, nil)
		if called == initial {
			t.Errorf("initial %t: called %t, want %t", initial, called, !initial)
		}
	}
}
