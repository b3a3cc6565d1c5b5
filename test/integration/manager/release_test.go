// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/slicing"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// freeze makes the API server refuse the manager's writes to the pod until the returned function
// is called or the test ends. It returns when this is in effect.
func (w *world) freeze(pod string) (thaw func()) {
	w.Helper()
	equal, all := admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze-" + w.Namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: &equal,
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}, Scope: &all,
					},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.name != '%s' || !request.userInfo.username.endsWith(':%s')", pod, manager.Name),
				Message:    "pod is frozen",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace},
			}},
		},
	}
	thaw = func() {
		for _, object := range []client.Object{binding.DeepCopy(), policy.DeepCopy()} {
			expect.Success(w, client.IgnoreNotFound(w.Client.Delete(context.Background(), object)))
		}
	}
	w.Create(policy)
	w.Create(binding)
	w.Cleanup(thaw)
	asManager := w.ClientOf(w, w.Component(w, manager.Name))
	w.Until("pod "+pod+" is frozen", func() error {
		object := &corev1.Pod{ObjectMeta: w.Meta(pod)}
		err := asManager.Status().Patch(w.Context(), object, env.MergePatch(`{"metadata":{"labels":{"frozen":"no"}}}`), client.DryRunAll)
		return await.ErrorIf(err == nil || !strings.Contains(err.Error(), "pod is frozen"), "error %v", err)
	})
	return thaw
}

// blocked waits until the status names what blocks the deletion of the marker.
func (w *world) blocked(marker, part string) {
	w.Helper()
	w.markerShows(marker, "what blocks its deletion", func(m *v1alpha1.PodProbeMarker) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionMarksRemoved)
		return await.ErrorIf(c == nil || c.Reason != "WriteFailed" || !strings.Contains(c.Message, part), "%+v", c)
	})
}

// A pod that cannot be written blocks the deletion of its marker, but not of others, and causes
// few requests. The deletion completes soon after the pod can be written.
func TestPodThatRefusesWritesBlocksItsMarker(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.node("frozen")
	w.pod("a", "frozen")
	w.pod("b", "frozen")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1").Condition("game.io/web")))
	w.marker(builders.Marker(w.Namespace, "api").Probe(builders.Probe("p").Label(succeeded, "api", "1").Container("api")))
	w.planned("frozen", "a/web#p", "b/web#p")
	w.report("frozen", states{"web#p": succeeded})
	for _, pod := range []string{"a", "b"} {
		w.marked(pod, "label web=1", "condition game.io/web=True")
	}
	thaw := w.freeze("b")
	before := w.Requested()
	w.Delete(w.markerNamed("web"))
	w.marked("a")
	w.blocked("web", "Pods still have marks of the marker (1, such as b). The last write to pod b failed:")
	w.blocked("web", "pod is frozen")
	w.event("web", "WriteFailed", "pod is frozen")
	// The marks of the other marker on the same pod are not the reason to wait.
	w.Delete(w.markerNamed("api"))
	w.gone("api")

	after := w.Requested()
	added := after.Since(before)
	refused := added.Count(func(r env.Request) bool { return r.Resource == "pods" && (r.Code == "422" || r.Code == "403") })
	statuses := added.Writes("podprobemarkers", "status")
	lists := added.Count(func(r env.Request) bool {
		return r.Verb == "LIST" && (r.Resource == "pods" || r.Resource == "nodepodprobes" || r.Resource == "probeplans")
	})
	t.Logf("%d refused writes, %d writes of statuses, %d lists", refused, statuses, lists)
	if refused == 0 || refused > 20 || statuses > 4 || lists > 0 {
		t.Errorf("%d refused writes, want 1 to 20; %d writes of statuses, want at most 4; %d lists, want 0", refused, statuses, lists)
	}
	thaw()
	w.gone("web")
	w.marked("b")
}

// The commands that the status recommends release the marker.
func TestMarksRemovedByHandReleaseTheMarker(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.node("by-hand")
	w.pod("a", "by-hand")
	w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1").Condition("game.io/web")))
	w.planned("by-hand", "a/web#p")
	w.report("by-hand", states{"web#p": succeeded})
	w.marked("a", "label web=1", "condition game.io/web=True")
	w.freeze("a")
	w.Delete(w.markerNamed("web"))
	w.blocked("web", "pod is frozen")
	pod := w.stored("a")
	w.Patch(pod.DeepCopy(), `{"metadata":{"labels":{"web":null}}}`)
	w.Must(w.Client.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"game.io/web","$patch":"delete"}]}}`))))
	w.Poll.Timeout = 2 * time.Second
	w.gone("web")
	w.marked("a")
}

func (w *world) metadata() metadata.Interface {
	w.Helper()
	c, err := metadata.NewForConfig(metadata.ConfigFor(w.Component(w, manager.Name)))
	w.Must(err)
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
		"deleted pod": builders.Pod(w.Namespace, "gone").Build(),
		"other UID":   builders.Pod(w.Namespace, "a").Build(),
	} {
		if _, err := pods.Marks(t.Context(), target, some); !errors.Is(err, apply.ErrGone) {
			t.Errorf("%s: error %v, want %v", name, err, apply.ErrGone)
		}
	}
	w.marked("a")

	version, err := pods.Marks(t.Context(), pod, some)
	w.Must(err)
	w.marked("a", "label healthy=true", "annotation cost=1", "condition game.io/idle=True")
	live := w.stored("a")
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
	w.Must(err)
	w.marked("a")
	w.Delete(pod, client.GracePeriodSeconds(0))
}

func TestExclusiveMarksRequireTheVersionRead(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	pods := apply.NewPods(w.metadata())
	read := w.pod("a", "no-node")
	primary := mark.Marks{mark.Label("role"): {Text: "primary"}}
	w.Patch(read.DeepCopy(), `{"metadata":{"annotations":{"their.io/a":"1"}}}`)
	if _, err := pods.MarksOn(t.Context(), read, primary); !errors.Is(err, apply.ErrOutdated) {
		t.Errorf("label at an old version: error %v, want %v", err, apply.ErrOutdated)
	}
	w.marked("a", "annotation their.io/a=1")
	live := w.stored("a")
	_, err := pods.MarksOn(t.Context(), live, primary)
	w.Must(err)
	w.marked("a", "annotation their.io/a=1", "label role=primary")
	// The same content is a conflict too: the version decides, not whether there is something to write.
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrOutdated) {
		t.Errorf("the same label at an old version: error %v, want %v", err, apply.ErrOutdated)
	}
	w.Delete(live, client.GracePeriodSeconds(0))
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrGone) {
		t.Errorf("deleted pod: error %v, want %v", err, apply.ErrGone)
	}
	other := w.pod("a", "no-node")
	if _, err := pods.MarksOn(t.Context(), live, primary); !errors.Is(err, apply.ErrGone) {
		t.Errorf("other pod of the same name: error %v, want %v", err, apply.ErrGone)
	}
	w.Delete(other, client.GracePeriodSeconds(0))
}

func TestMarkerWritesRequireTheVersionRead(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	markers := apply.NewMarkers(w.Client, w.metadata())
	read := w.marker(builders.Marker(w.Namespace, "web").Probe(builders.Probe("p").Condition("game.io/p")))
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
	w.Must(err)
	w.Patch(stored, `{"metadata":{"finalizers":null}}`)
	w.Delete(stored)
}

// TestPlans writes the plan of a node as the controller does: a ProbePlan, and the NodePodProbe that refers
// to it, also if it has the plan of OpenKruise.
func TestPlans(t *testing.T) {
	w := newWorldWithoutManager(t, servers.Parallel(t))
	plans := apply.NewPlans(w.Client, w.metadata())
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "planned", UID: types.UID("planned")}}
	pods := []v1alpha1.PodProbe{{Namespace: "ns", Name: "a", UID: "u"}}
	first, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Pods: pods})
	w.Must(err)
	if _, err := plans.WriteSlice(t.Context(), node, slicing.Slice{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second creation: error %v, want that it exists", err)
	}
	second, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Stored: first})
	w.Must(err)
	if _, err := plans.WriteSlice(t.Context(), node, slicing.Slice{Stored: first, Pods: pods}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: error %v, want a conflict", err)
	}
	if first.Generation != 1 || second.Generation != 2 || len(second.Pods) > 0 {
		t.Errorf("generations %d and %d with %d pods, want 1 and 2 without pods", first.Generation, second.Generation, len(second.Pods))
	}
	created, err := plans.Create(t.Context(), node, "0:2")
	w.Must(err)
	if stored, err := w.getPlan(t.Context(), node.Name); err != nil || !slicing.IsSliced(stored) || stored.Generation != 3 {
		t.Errorf("stored %+v, error %v, want a plan in ProbePlans of generation 3", stored, err)
	}
	w.Must(w.Client.Patch(t.Context(), &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node.Name}},
		env.MergePatch(`{"spec":{"podProbes":[{"namespace":"ns","name":"a","uid":"u","IP":""}]}}`)))
	if stored, err := w.getPlan(t.Context(), node.Name); err != nil || slicing.IsSliced(stored) {
		t.Errorf("stored %+v, error %v, want a plan in the spec", stored, err)
	}
	for _, removed := range [][]string{{"u"}, nil} {
		_, err = plans.Refer(t.Context(), created, "0:2", removed)
		w.Must(err)
		stored := &v1alpha1.NodePodProbe{}
		w.Must(w.Client.Get(t.Context(), client.ObjectKey{Name: node.Name}, stored))
		if !slicing.IsSliced(stored) || !slices.Equal(stored.Spec.RemovedPods, removed) {
			t.Errorf("stored %+v, want a plan in ProbePlans without the pods %q", stored, removed)
		}
	}
	w.Must(plans.Delete(t.Context(), created))
	w.Must(plans.Delete(t.Context(), created))
	if _, err := plans.Refer(t.Context(), created, "0:2", nil); !errors.Is(err, apply.ErrGone) {
		t.Errorf("deleted NodePodProbe: error %v, want %v", err, apply.ErrGone)
	}
	w.Must(plans.DeletePlans(t.Context(), node.Name))
}
