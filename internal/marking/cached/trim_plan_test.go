// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
)

// FuzzTrimPlan fills every field of a NodePodProbe. Whatever other objects have been trimmed, plan
// and report stay as they are, and so does the metadata that identifies the object.
func FuzzTrimPlan(f *testing.F) {
	for seed := range int64(100) {
		f.Add(seed)
	}
	trimmer := view.NewPlanTrimmer()
	f.Fuzz(func(t *testing.T, seed int64) {
		whole := &v1alpha1.NodePodProbe{}
		// Time has no exported fields to fill.
		randfill.NewWithSeed(seed).NilChance(.3).NumElements(0, 3).MaxDepth(12).
			Funcs(func(*metav1.Time, randfill.Continue) {}, func(*metav1.FieldsV1, randfill.Continue) {}).Fill(whole)
		want := whole.DeepCopy()
		want.TypeMeta = metav1.TypeMeta{}
		want.ObjectMeta = metav1.ObjectMeta{
			Name: whole.Name, UID: whole.UID, ResourceVersion: whole.ResourceVersion, Generation: whole.Generation,
			Annotations: whole.Annotations, DeletionTimestamp: whole.DeletionTimestamp, OwnerReferences: whole.OwnerReferences,
		}
		before := whole.DeepCopy()
		got := trimmer.Trim(whole)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trimmed NodePodProbe (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, whole); diff != "" {
			t.Errorf("original changed (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(got, trimmer.Trim(got)); diff != "" {
			t.Errorf("Trim is not idempotent (-once +twice):\n%s", diff)
		}
	})
}

func TestTrimmedPlansShareEqualProbes(t *testing.T) {
	node := func(name, marker string) *v1alpha1.NodePodProbe {
		probe := v1alpha1.ContainerProbe{Name: marker + "#p", ContainerName: "main", Plan: "1"}
		return &v1alpha1.NodePodProbe{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{Name: "pod-" + name, Probes: []v1alpha1.ContainerProbe{probe}}}},
		}
	}
	trimmer := view.NewPlanTrimmer()
	first := func(npp *v1alpha1.NodePodProbe) *v1alpha1.ContainerProbe {
		return &trimmer.Trim(npp).Spec.PodProbes[0].Probes[0]
	}
	a := first(node("a", "web"))
	if b := first(node("b", "web")); a != b {
		t.Error("equal probes of two nodes are not shared")
	}
	if c := first(node("c", "api")); a == c {
		t.Error("different probes are shared")
	}
}

// Who reads a trimmed plan still knows since when the agent must run it. Writes of the status do not
// count.
func TestTrimmedPlanKeepsLastEdit(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return new(metav1.Unix(seconds, 0)) }
	npp := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: *at(1), ManagedFields: []metav1.ManagedFieldsEntry{{Time: at(3)}, {Time: at(2)}, {Time: at(4), Subresource: "status"}, {}},
	}}
	trimmer := view.NewPlanTrimmer()
	for _, plan := range []*v1alpha1.NodePodProbe{npp, trimmer.Trim(npp), trimmer.Trim(trimmer.Trim(npp))} {
		if got := view.Edited(plan); !got.Equal(at(3).Time) {
			t.Errorf("last edit %s, want %s", got, at(3))
		}
	}
}
