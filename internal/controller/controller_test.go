// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/controller"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

// reader is what the informers know.
func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

// broken is a cache that can't be read.
type broken struct{}

var errBroken = errors.New("no cache")

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

func TestMarkers(t *testing.T) {
	unfollowable := builders.Marker("ns", "nothing-selected").Build()
	unfollowable.Spec.Selector = nil
	cache := reader(t, unfollowable, builders.Marker("ns", "web").Build(), builders.Marker("other", "api").Build())
	markers, err := controller.Markers(t.Context(), cache, plan.NewCompiler(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(markers))
	for _, m := range markers {
		names = append(names, m.Key().String())
	}
	if diff := cmp.Diff([]string{"ns/web"}, names); diff != "" {
		t.Errorf("markers (-want +got):\n%s", diff)
	}
	if _, err := controller.Markers(t.Context(), broken{}, plan.NewCompiler(), "ns"); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want %v", err, errBroken)
	}
	if got := controller.MarkersOrNone(t.Context(), broken{}, plan.NewCompiler(), "ns"); got != nil {
		t.Errorf("markers %v of a cache that can't be read", got)
	}
}

func TestReport(t *testing.T) {
	states := []v1alpha1.ContainerProbeState{{Name: "web#idle", State: v1alpha1.ProbeSucceeded}}
	cache := reader(t, &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status: v1alpha1.NodePodProbeStatus{PodProbeStatuses: []v1alpha1.PodProbeStatus{
			{Namespace: "ns", Name: "a", UID: "uid-a", ProbeStates: states},
		}},
	})
	cases := map[string]struct {
		pod  *corev1.Pod
		want mark.PodReport
	}{
		"reported": {
			pod:  builders.Pod("ns", "a").Build(),
			want: mark.PodReport{Reported: true, States: mark.States{{Marker: "web", Probe: "idle"}: states[0]}},
		},
		"another UID":       {pod: builders.Pod("ns", "a").UID("later").Build(), want: mark.PodReport{Reported: true}},
		"not bound":         {pod: builders.Pod("ns", "a").Node("").Build()},
		"no plan as of yet": {pod: builders.Pod("ns", "a").Node("node-2").Build()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := controller.Report(t.Context(), cache, tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := controller.Report(t.Context(), broken{}, builders.Pod("ns", "a").Build()); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want %v", err, errBroken)
	}
}

func TestSameMarker(t *testing.T) {
	before := builders.Marker("ns", "web").Build()
	another := before.DeepCopy()
	another.UID = "later"
	relabelled := before.DeepCopy()
	relabelled.Labels = map[string]string{"team": "a"}
	cases := map[string]struct {
		after *v1alpha1.PodProbeMarker
		want  bool
	}{
		"metadata alone":            {after: relabelled, want: true},
		"an edited spec":            {after: builders.Marker("ns", "web").Generation(2).Build()},
		"being deleted":             {after: builders.Marker("ns", "web").Deleting().Build()},
		"made again under its name": {after: another},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := controller.SameMarker(before, tc.after); got != tc.want {
				t.Errorf("SameMarker is %t, want %t", got, tc.want)
			}
		})
	}
}
