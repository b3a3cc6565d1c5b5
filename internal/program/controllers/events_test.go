// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached/gather"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/program/controllers"
	"github.com/seamark-dev/seamark/test/builders"
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
		"other value":     {after: builders.Marker("ns", "web").Annotation(v1alpha1.PublishHTTPBodyAnnotationKey, "no").Build()},
		"edited spec":     {after: builders.Marker("ns", "web").Generation(2).Build(), want: []string{"game"}},
		"being deleted":   {after: builders.Marker("ns", "web").Deleting().Build(), want: []string{"game"}},
		"recreated":       {after: recreated, want: []string{"game"}},
		"edited selector": {after: builders.Marker("ns", "web").Selector("app", "db").Generation(2).Build(), want: []string{"db", "game"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			events := controller.MarkerEvents(func(_ context.Context, _ controller.Queue, marker *v1alpha1.PodProbeMarker) {
				got = append(got, marker.Spec.Selector.MatchLabels["app"])
			})
			events.Update(t.Context(), event.TypedUpdateEvent[*v1alpha1.PodProbeMarker]{ObjectOld: before, ObjectNew: tc.after}, nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("selectors of changed markers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkerEventsIgnoreMarkersThatExistAtTheStart(t *testing.T) {
	for _, initial := range []bool{true, false} {
		called := false
		events := controller.MarkerEvents(func(context.Context, controller.Queue, *v1alpha1.PodProbeMarker) { called = true })
		events.Create(t.Context(), event.TypedCreateEvent[*v1alpha1.PodProbeMarker]{
			Object: builders.Marker("ns", "web").Build(), IsInInitialList: initial,
		}, nil)
		if called == initial {
			t.Errorf("initial %t: called %t, want %t", initial, called, !initial)
		}
	}
}

func TestNodeUpdates(t *testing.T) {
	node := func(kind string) *metav1.PartialObjectMetadata {
		n := gather.NewNode()
		n.Labels = map[string]string{v1alpha1.NodeTypeLabel: kind}
		return n
	}
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"same kind":       {before: "a", after: "b"},
		"becomes virtual": {after: "virtual-kubelet", want: true},
		"gets a kubelet":  {before: "virtual-kubelet", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := false
			events := controller.NodeEvents(nil, func(context.Context, controller.Queue, *metav1.PartialObjectMetadata) { got = true })
			events.Update(t.Context(), event.TypedUpdateEvent[*metav1.PartialObjectMetadata]{ObjectOld: node(tc.before), ObjectNew: node(tc.after)}, nil)
			if got != tc.want {
				t.Errorf("called: %t, want %t", got, tc.want)
			}
		})
	}
}

// broken is a client that fails every list.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("broken client")
}

func TestLookupReturnsNothingAfterAnError(t *testing.T) {
	lookup := controller.Lookup{Reader: gather.Reader{Client: broken{}, Compiler: plan.NewCompiler()}}
	if got := lookup.Markers(t.Context(), "ns"); got != nil {
		t.Errorf("markers %v, want none", got)
	}
	if got := lookup.NodePods(t.Context(), "node-1"); got != nil {
		t.Errorf("pods %v, want none", got)
	}
}
