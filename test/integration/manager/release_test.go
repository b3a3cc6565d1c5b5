// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
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
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}, Scope: &all},
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
