// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestPoliciesAreSound holds the policies, as installed, to what the cluster's own type
// checker says of them.
func TestPoliciesAreSound(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	for _, name := range []string{"seamark-agent-own-node", "seamark-agent-events", "seamark-marker-author"} {
		s.Eventually("policy "+name+" is checked", func(ctx context.Context) error {
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err := s.Client.Get(ctx, ctrl.ObjectKey{Name: name}, policy); err != nil {
				return err
			}
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
				return fmt.Errorf("not yet: %+v", policy.Status)
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}

// TestAgentsAreHeldToTheirNode takes a token of a real agent, as somebody does who has
// taken over its node. That the agents themselves report and write events all the while
// is what most other tests rest on.
func TestAgentsAreHeldToTheirNode(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	node, agent := s.stolenAgent()

	own := &appsv1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Eventually("a report for its own node is let through", func(ctx context.Context) error {
		return agent.Status().Patch(ctx, own.DeepCopy(), statusPatch(), ctrl.DryRunAll)
	})
	// The manager takes a plan without a node away: it is made again until the agent has tried.
	name := s.Namespace
	s.Eventually("a report for another node is refused", func(ctx context.Context) error {
		other := &appsv1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.Client.Create(ctx, other.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return refusedWith(agent.Status().Patch(ctx, other, statusPatch()),
			fmt.Sprintf("the agent of node %q may not write NodePodProbe %q", node, name))
	})
	s.Eventually("the other plan is gone", func(ctx context.Context) error {
		err := s.Client.Get(ctx, ctrl.ObjectKey{Name: name}, &appsv1alpha1.NodePodProbe{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or error %w", err)
	})
	foreign := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "event-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: "pod"},
		Reason:         "Killing", Source: corev1.EventSource{Component: "kubelet", Host: node},
	}
	cluster.Must(t, refusedWith(agent.Create(t.Context(), foreign), "may only write events"))
}

// stolenAgent returns the name of a node and a client with a token of its agent.
func (s *suite) stolenAgent() (string, ctrl.Client) {
	s.Helper()
	agents := &corev1.PodList{}
	var pod corev1.Pod
	s.Eventually("an agent runs", func(ctx context.Context) error {
		err := s.Client.List(ctx, agents, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabels{"app.kubernetes.io/component": "agent"})
		if err != nil {
			return err
		}
		for _, pod = range agents.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				return nil
			}
		}
		return fmt.Errorf("none of %d pods runs", len(agents.Items))
	})
	token, err := s.clientset.CoreV1().ServiceAccounts(cluster.SystemNamespace).CreateToken(s.Context(), pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}}, metav1.CreateOptions{})
	cluster.Must(s, err)
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	agent, err := ctrl.New(config, ctrl.Options{Scheme: s.Client.Scheme()})
	cluster.Must(s, err)
	return pod.Spec.NodeName, agent
}

func statusPatch() ctrl.Patch {
	return ctrl.RawPatch(types.MergePatchType, []byte(`{"status": {"observedGeneration": 0}}`))
}

// refusedWith returns an error unless err is a refusal that says text.
func refusedWith(err error, text string) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("error %v, want a refusal that says %q", err, text) //nolint:errorlint // It may be nil.
	}
	return nil
}

// TestMarkerAuthorIsWarned writes a marker as a user who may not exec, with kubectl, as
// installed by default.
func TestMarkerAuthorIsWarned(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	s.Kubectl("create", "role", "markers", "--verb=create,patch", "--resource=podprobemarkers.apps.kruise.io")
	s.Kubectl("create", "rolebinding", "markers", "--role=markers", "--user=ann")
	s.Kubectl("create", "role", "pods", "--verb=patch", "--resource=pods")
	s.Kubectl("create", "rolebinding", "pods", "--role=pods", "--user=ann")
	marker := newMarker("warned", map[string]string{"app": "none"}, newProbe("busy", shell("true"), condition("test.dev/busy")))
	marker.SetGroupVersionKind(appsv1alpha1.GroupVersion().WithKind("PodProbeMarker"))
	want := fmt.Sprintf(`user "ann" may not create pods/exec in namespace %q, which is needed to write probes with exec: busy`, s.Namespace)
	manifest, err := json.Marshal(marker)
	cluster.Must(t, err)
	file := filepath.Join(t.TempDir(), "marker.json")
	cluster.Must(t, os.WriteFile(file, manifest, 0o600))
	out := s.Kubectl("create", "--as=ann", "-f", file)
	if !strings.Contains(out, "Warning: ") || !strings.Contains(out, want) {
		t.Errorf("kubectl create says %q, want a warning that says %q", out, want)
	}
	if strings.Contains(out, "may not patch pods") {
		t.Errorf("kubectl create says %q to a user who may patch pods", out)
	}
}
