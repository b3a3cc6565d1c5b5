// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/builders"
)

// selecting sets the selector of a marker.
func selecting(b *builders.MarkerBuilder, requirements ...metav1.LabelSelectorRequirement) *v1alpha1.PodProbeMarker {
	marker := b.Unsaved().Build()
	marker.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}, MatchExpressions: requirements}
	return marker
}

// limitedWrites counts the writes of marks to the pod in the span and checks that they are limited
// and reported once.
func (w *world) limitedWrites(t *testing.T, span time.Duration, marker string) {
	before, err := w.env.Requests(t.Context())
	w.must(err)
	w.event("a", v1alpha1.EventReasonMarksLimited, "change again after each write")
	w.condition(marker, v1alpha1.ConditionMarksApplied, "WritesLimited", "")
	w.event(marker, "WritesLimited", "such as a")
	timer := time.NewTimer(span)
	defer timer.Stop()
	<-timer.C
	writes := w.writes(before)
	marks := writes["APPLY pods/status 200"] + writes["PATCH pods/status 200"]
	t.Logf("writes: %v", writes)
	// The burst, and the writes after 1, 2, 4, 8 and 16 seconds.
	if marks > 5+5 {
		t.Errorf("%d writes of marks, want at most 10", marks)
	}
	var events corev1.EventList
	w.must(w.client.List(t.Context(), &events, client.InNamespace(w.namespace)))
	for _, e := range events.Items {
		if strings.Contains(e.Reason, "Limited") && e.Count > 1 {
			t.Errorf("event %s of %s is recorded %d times", e.Reason, e.InvolvedObject.Name, e.Count)
		}
	}
}

// Marker z selects the pod until marker w marks it, and marker w selects it when marker z has
// marked it.
func TestMarkersThatDeselectOneAnother(t *testing.T) {
	w := newWorld(t, shared)
	node := w.node("loop")
	w.pod("a", node)
	w.must(w.client.Create(t.Context(), selecting(builders.Marker(w.namespace, "z").
		Probe(builders.Probe("p").Label(succeeded, "z", "yes")),
		metav1.LabelSelectorRequirement{Key: "w", Operator: metav1.LabelSelectorOpDoesNotExist})))
	w.must(w.client.Create(t.Context(), selecting(builders.Marker(w.namespace, "w").
		Probe(builders.Probe("p").Label(succeeded, "w", "yes")),
		metav1.LabelSelectorRequirement{Key: "z", Operator: metav1.LabelSelectorOpExists})))
	w.planned(node, "a/z#p")
	pod, err := w.getPod(t.Context(), "a")
	w.must(err)
	npp, err := w.getPlan(t.Context(), node)
	w.must(err)
	w.must(writeSlice(t.Context(), w.client, npp, "loop.0", []seamarkv1alpha1.PodReport{{
		Namespace: w.namespace, Name: "a", UID: string(pod.UID),
		Probes: []v1alpha1.ContainerProbeState{{Name: "z#p", State: succeeded}, {Name: "w#p", State: succeeded}},
	}}))
	w.limitedWrites(t, 8*time.Second, "z")
	w.condition("w", v1alpha1.ConditionMarksApplied, "WritesLimited", "")

	// Without the second marker, the pod calms down.
	w.must(w.client.Delete(t.Context(), w.markerNamed("w")))
	w.condition("z", v1alpha1.ConditionMarksApplied, "Applied", "")
	w.marked("a", "label z=yes")
}

// Another client resets the label as soon as Seamark sets it.
func TestClientThatResetsAMark(t *testing.T) {
	w := newWorld(t, shared)
	pod := w.healthyPod("foreign")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watcher, err := w.env.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	w.must(err)
	defer watcher.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			if changed, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Modified && changed.Labels["healthy"] == "true" {
				_ = w.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"healthy":"theirs"}}}`)),
					client.FieldOwner("them"))
			}
		}
	}()
	w.must(w.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"healthy":"theirs"}}}`)),
		client.FieldOwner("them")))
	w.limitedWrites(t, 4*time.Second, "web")
	cancel()
	watcher.Stop()
	<-done
	w.marked("a", "label healthy=true")
	w.condition("web", v1alpha1.ConditionMarksApplied, "Applied", "")
}
