// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

func (w *world) metadata() metadata.Interface {
	w.Helper()
	c, err := metadata.NewForConfig(metadata.ConfigFor(w.env.Component(w, manager.Name)))
	w.must(err)
	return c
}

func TestMarksRequireMatchingUID(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	pods := apply.NewPods(w.metadata())
	pod := w.pod("a", "no-node")
	some := mark.Marks{
		mark.Label("healthy"):              {Text: "true"},
		mark.Annotation("cost"):            {Text: "1"},
		mark.ConditionType("game.io/idle"): {Condition: mark.Condition{Status: corev1.ConditionTrue}},
	}
	for name, target := range map[string]*corev1.Pod{
		"deleted pod": builders.Pod(w.namespace, "gone").Build(),
		"other UID":   builders.Pod(w.namespace, "a").Build(),
	} {
		if _, err := pods.Marks(t.Context(), target, some); !errors.Is(err, apply.ErrGone) {
			t.Errorf("%s: error %v, want %v", name, err, apply.ErrGone)
		}
	}
	w.marked("a")

	version, err := pods.Marks(t.Context(), pod, some)
	w.must(err)
	w.marked("a", "label healthy=true", "annotation cost=1", "condition game.io/idle=True")
	live, err := w.getPod(t.Context(), "a")
	w.must(err)
	if live.ResourceVersion != version {
		t.Errorf("returned version %s, stored version %s", version, live.ResourceVersion)
	}
	owned, err := mark.Owned(live)
	if err != nil || !owned.Equal(some) {
		t.Errorf("owned marks after the write: %+v, %v", owned, err)
	}
	again, err := pods.Marks(t.Context(), pod, some)
	if err != nil || again != version {
		t.Errorf("writing the same marks again changed the version from %s to %s: %v", version, again, err)
	}
	_, err = pods.Marks(t.Context(), pod, mark.Marks{})
	w.must(err)
	w.marked("a")
	w.must(w.client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
}

func TestExclusiveMarksRequireTheVersionRead(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	pods := apply.NewPods(w.metadata())
	read := w.pod("a", "no-node")
	primary := mark.Marks{mark.Label("role"): {Text: "primary"}}
	w.must(w.client.Patch(t.Context(), read.DeepCopy(), env.MergePatch(`{"metadata":{"annotations":{"their.io/a":"1"}}}`)))
	if _, err := pods.MarksOn(t.Context(), read, primary); !errors.Is(err, apply.ErrOutdated) {
		t.Errorf("label at an old version: error %v, want %v", err, apply.ErrOutdated)
	}
	w.marked("a", "annotation their.io/a=1")
	live, err := w.getPod(t.Context(), "a")
	w.must(err)
	_, err = pods.MarksOn(t.Context(), live, primary)
	w.must(err)
	w.marked("a", "annotation their.io/a=1", "label role=primary")
	// The same content is a conflict too: the version decides, not whether there is something to write.
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrOutdated) {
		t.Errorf("the same label at an old version: error %v, want %v", err, apply.ErrOutdated)
	}
	w.must(w.client.Delete(t.Context(), live, client.GracePeriodSeconds(0)))
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrGone) {
		t.Errorf("deleted pod: error %v, want %v", err, apply.ErrGone)
	}
	other := w.pod("a", "no-node")
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrGone) {
		t.Errorf("other pod of the same name: error %v, want %v", err, apply.ErrGone)
	}
	w.must(w.client.Delete(t.Context(), other, client.GracePeriodSeconds(0)))
}

func TestMarkerWritesRequireTheVersionRead(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	markers := apply.NewMarkers(w.client, w.metadata())
	read := w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Condition("game.io/p")))
	gone := read.DeepCopy()
	gone.Name = "gone"
	if _, err := markers.Status(t.Context(), gone, v1alpha1.PodProbeMarkerStatus{}); !errors.Is(err, apply.ErrGone) {
		t.Errorf("status of a deleted marker: error %v, want %v", err, apply.ErrGone)
	}
	if _, err := markers.Finalizers(t.Context(), gone, nil); !errors.Is(err, apply.ErrGone) {
		t.Errorf("finalizers of a deleted marker: error %v, want %v", err, apply.ErrGone)
	}
	stored, err := markers.Status(t.Context(), read, v1alpha1.PodProbeMarkerStatus{MatchedPods: 3})
	if err != nil || stored.Status.MatchedPods != 3 {
		t.Errorf("stored status: %+v, %v", stored, err)
	}
	if _, err := markers.Status(t.Context(), read, v1alpha1.PodProbeMarkerStatus{MatchedPods: 4}); !apierrors.IsConflict(err) {
		t.Errorf("status at an old version: error %v, want a conflict", err)
	}
	if _, err := markers.Finalizers(t.Context(), read, nil); !apierrors.IsConflict(err) {
		t.Errorf("finalizers at an old version: error %v, want a conflict", err)
	}
	_, err = markers.Finalizers(t.Context(), stored, []string{"example.com/f"})
	w.must(err)
	w.must(w.client.Patch(t.Context(), stored, env.MergePatch(`{"metadata":{"finalizers":null}}`)))
	w.must(w.client.Delete(t.Context(), stored))
}

// TestPlans writes the plan of a node as the controller does: a ProbePlan, and the NodePodProbe that refers
// to it, also if it has the plan of OpenKruise.
func TestPlans(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	plans := apply.NewPlans(w.client, w.metadata())
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "planned", UID: types.UID("planned")}}
	pods := []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "u"}}
	first, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Pods: pods})
	w.must(err)
	if _, err := plans.WriteSlice(t.Context(), node, slicing.Slice{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second creation: error %v, want that it exists", err)
	}
	second, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Stored: first})
	w.must(err)
	if _, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Stored: first, Pods: pods}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: error %v, want a conflict", err)
	}
	if first.Generation != 1 || second.Generation != 2 || len(second.Pods) > 0 {
		t.Errorf("generations %d and %d with %d pods, want 1 and 2 without pods", first.Generation, second.Generation, len(second.Pods))
	}
	created, err := plans.Create(t.Context(), node, "0:2")
	w.must(err)
	if stored, err := w.getPlan(t.Context(), node.Name); err != nil || !slicing.IsSliced(stored) || stored.Generation != 3 {
		t.Errorf("stored %+v, error %v, want a plan in ProbePlans of generation 3", stored, err)
	}
	w.must(w.client.Patch(t.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node.Name}},
		env.MergePatch(`{"spec":{"podProbes":[{"namespace":"ns","name":"a","uid":"u","IP":""}]}}`)))
	if stored, err := w.getPlan(t.Context(), node.Name); err != nil || slicing.IsSliced(stored) {
		t.Errorf("stored %+v, error %v, want a plan in the spec", stored, err)
	}
	for _, removed := range [][]string{{"u"}, nil} {
		_, err = plans.Refer(t.Context(), created, "0:2", removed)
		w.must(err)
		stored := &v1alpha1.NodePodProbe{}
		w.must(w.client.Get(t.Context(), client.ObjectKey{Name: node.Name}, stored))
		if !slicing.IsSliced(stored) || !slices.Equal(stored.Spec.RemovedPods, removed) {
			t.Errorf("stored %+v, want a plan in ProbePlans without the pods %q", stored, removed)
		}
	}
	w.must(plans.Delete(t.Context(), created))
	w.must(plans.Delete(t.Context(), created))
	if _, err := plans.Refer(t.Context(), created, "0:2", nil); !errors.Is(err, apply.ErrGone) {
		t.Errorf("deleted NodePodProbe: error %v, want %v", err, apply.ErrGone)
	}
	w.must(plans.DeletePlans(t.Context(), node.Name))
}
