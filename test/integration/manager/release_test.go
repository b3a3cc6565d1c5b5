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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// freeze makes the API server refuse the manager's writes to the pod until the returned function
// is called or the test ends. It returns when this is in effect.
func (w *world) freeze(pod string) (thaw func()) {
	w.Helper()
	equal, all := admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "freeze-" + w.namespace},
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
				MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}
	thaw = func() {
		for _, object := range []client.Object{binding.DeepCopy(), policy.DeepCopy()} {
			if err := client.IgnoreNotFound(w.client.Delete(context.Background(), object)); err != nil {
				w.Error(err)
			}
		}
	}
	w.must(w.client.Create(w.Context(), policy))
	w.must(w.client.Create(w.Context(), binding))
	w.Cleanup(thaw)
	asManager, err := client.New(w.env.Component(w, manager.Name), client.Options{Scheme: w.env.Scheme})
	w.must(err)
	w.until("pod "+pod+" is frozen", func(ctx context.Context) (string, error) {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}
		err := asManager.Status().Patch(ctx, object, env.MergePatch(`{"metadata":{"labels":{"frozen":"no"}}}`), client.DryRunAll)
		switch {
		case err == nil:
			return "it can be written", nil
		case strings.Contains(err.Error(), "pod is frozen"):
			return "", nil
		}
		return "", err
	})
	return thaw
}

// blocked waits until the status names what blocks the deletion of the marker.
func (w *world) blocked(marker, part string) {
	w.Helper()
	w.until("marker "+marker+" reports what blocks its deletion", func(ctx context.Context) (string, error) {
		found, err := w.getMarker(ctx, marker)
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionMarksRemoved)
		if c != nil && c.Reason == "WriteFailed" && strings.Contains(c.Message, part) {
			return "", nil
		}
		return fmt.Sprintf("%+v", c), nil
	})
}

// A pod that cannot be written blocks the deletion of its marker, but not of others, and causes
// few requests. The deletion completes soon after the pod can be written.
func TestPodThatRefusesWritesBlocksItsMarker(t *testing.T) {
	w := newWorld(t, servers.Parallel(t))
	w.node("frozen")
	w.pod("a", "frozen")
	w.pod("b", "frozen")
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1").Condition("game.io/web")))
	w.marker(builders.Marker(w.namespace, "api").Probe(builders.Probe("p").Label(succeeded, "api", "1").Container("api")))
	w.planned("frozen", "a/web#p", "b/web#p")
	w.report("frozen", states{"web#p": succeeded})
	for _, pod := range []string{"a", "b"} {
		w.marked(pod, "label web=1", "condition game.io/web=True")
	}
	thaw := w.freeze("b")
	before, err := w.env.Requests(t.Context())
	w.must(err)
	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.marked("a")
	w.blocked("web", "Pods still have marks of the marker (1, such as b). The last write to pod b failed:")
	w.blocked("web", "pod is frozen")
	w.event("web", "WriteFailed", "pod is frozen")
	// The marks of the other marker on the same pod are not the reason to wait.
	w.must(w.client.Delete(t.Context(), w.markerNamed("api")))
	w.gone("api")

	after, err := w.env.Requests(t.Context())
	w.must(err)
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
	w.marker(builders.Marker(w.namespace, "web").Probe(builders.Probe("p").Label(succeeded, "web", "1").Condition("game.io/web")))
	w.planned("by-hand", "a/web#p")
	w.report("by-hand", states{"web#p": succeeded})
	w.marked("a", "label web=1", "condition game.io/web=True")
	w.freeze("a")
	w.must(w.client.Delete(t.Context(), w.markerNamed("web")))
	w.blocked("web", "pod is frozen")
	pod, err := w.getPod(t.Context(), "a")
	w.must(err)
	w.must(w.client.Patch(t.Context(), pod.DeepCopy(), env.MergePatch(`{"metadata":{"labels":{"web":null}}}`)))
	w.must(w.client.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"game.io/web","$patch":"delete"}]}}`))))
	soon := await.Poll{Interval: 20 * time.Millisecond, Timeout: 2 * time.Second}
	soon.Until(t, "the marker is gone", func(ctx context.Context) (string, error) {
		_, err := w.getMarker(ctx, "web")
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it exists", err
	})
	w.marked("a")
}
