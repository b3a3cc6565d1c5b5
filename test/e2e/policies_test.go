// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
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

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestPolicyTypeCheck checks that the API server's type checker has no warnings about the
// installed policies.
func TestPolicyTypeCheck(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	for _, name := range []string{
		"seamark-agent-own-node", "seamark-agent-own-reports", "seamark-agent-events", "seamark-manager-plans", "seamark-manager-pods",
		"seamark-webhook-configurations", "seamark-delete-protection", "seamark-guards", "seamark-guard-updates", "seamark-guard-labels",
		"seamark-marker-author", "seamark-workloads-pods", "seamark-workloads-objects", "seamark-workloads-grants",
	} {
		s.Eventually("policy "+name+" is type-checked", func(ctx context.Context) error {
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err := s.Client.Get(ctx, ctrl.ObjectKey{Name: name}, policy); err != nil {
				return err
			}
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
				return fmt.Errorf("status %+v", policy.Status)
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}

// TestAgentsAreRestrictedToTheirNode uses the token of a real agent, as an attacker on its node
// would. Most other tests show that the agents themselves can report and write events.
func TestAgentsAreRestrictedToTheirNode(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	node, agent := s.agentToken()

	own := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Eventually("a report for its own node is accepted", func(ctx context.Context) error {
		return agent.Status().Patch(ctx, own.DeepCopy(), statusPatch(), ctrl.DryRunAll)
	})
	s.reportsOnlyOwnNode(agent, node)
	// The manager deletes a plan without a node, so it is recreated until the agent has tried.
	name := s.Namespace
	s.Eventually("a report for another node is rejected", func(ctx context.Context) error {
		other := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.Client.Create(ctx, other.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return rejectedWith(agent.Status().Patch(ctx, other, statusPatch()),
			fmt.Sprintf("the agent of node %q cannot write NodePodProbe %q", node, name))
	})
	s.Eventually("the other plan is deleted", func(ctx context.Context) error {
		err := s.Client.Get(ctx, ctrl.ObjectKey{Name: name}, &v1alpha1.NodePodProbe{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the plan exists, or error %w", err)
	})
	foreign := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "event-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: "pod"},
		Reason:         "Killing", Source: corev1.EventSource{Component: "kubelet", Host: node},
	}
	cluster.Must(t, rejectedWith(agent.Create(t.Context(), foreign), "can only write events"))
}

// agentToken returns the name of a node and a client with a token of its agent.
func (s *suite) agentToken() (string, ctrl.Client) {
	s.Helper()
	agents := &corev1.PodList{}
	var pod corev1.Pod
	s.Eventually("an agent is running", func(ctx context.Context) error {
		err := s.Client.List(ctx, agents, ctrl.InNamespace(cluster.SystemNamespace), ctrl.MatchingLabels{"app.kubernetes.io/component": "agent"})
		if err != nil {
			return err
		}
		for _, pod = range agents.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				return nil
			}
		}
		return fmt.Errorf("none of %d pods is running", len(agents.Items))
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

// reportsOnlyOwnNode creates ProbeReports with an agent's token.
func (s *suite) reportsOnlyOwnNode(agent ctrl.Client, node string) {
	s.Helper()
	slice := func(name, node string) *seamarkv1alpha1.ProbeReport {
		return &seamarkv1alpha1.ProbeReport{ObjectMeta: metav1.ObjectMeta{Name: name}, NodeName: node}
	}
	s.Eventually("a slice of its own node is accepted", func(ctx context.Context) error {
		return agent.Create(ctx, slice(node+".399", node), ctrl.DryRunAll)
	})
	for _, other := range []*seamarkv1alpha1.ProbeReport{slice("other.0", "other"), slice(node+".x.0", node+".x")} {
		cluster.Must(s, rejectedWith(agent.Create(s.Context(), other),
			fmt.Sprintf("the agent of node %q cannot write ProbeReport %q", node, other.Name)))
	}
}

func statusPatch() ctrl.Patch {
	return ctrl.RawPatch(types.MergePatchType, []byte(`{"status": {"observedGeneration": 0}}`))
}

// rejectedWith returns an error unless err is a rejection that contains text.
func rejectedWith(err error, text string) error {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("error %v, want a rejection that contains %q", err, text) //nolint:errorlint // It may be nil.
	}
	return nil
}
