// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const agentAccount = "seamark-agent"

// agentOf returns the configuration of an agent on the node: a token of the agent's account
// that is bound to a pod on the node, as a kubelet requests it.
func agentOf(t *testing.T, namespace, node string) *rest.Config {
	t.Helper()
	return agentIn(t, server, namespace, node)
}

// agentIn is [agentOf] with another API server. If node is empty, the token is not bound to a pod.
func agentIn(t *testing.T, e *env.Env, namespace, node string) *rest.Config {
	t.Helper()
	// This creates the account and its namespace.
	if config := e.ServiceAccount(t, namespace, agentAccount, nil); node == "" {
		return config
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "agent-"},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: agentAccount,
			Containers: []corev1.Container{{Name: "agent", Image: "seamark-agent"}},
		},
	}
	expect.NoError(t, e.Client.Create(t.Context(), pod))
	return e.ServiceAccount(t, namespace, agentAccount, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	})
}

// newNode creates a node and its plan and returns the name of both.
func newNode(t *testing.T) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	expect.NoError(t, server.Client.Create(t.Context(), node))
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	expect.NoError(t, server.Client.Create(t.Context(), plan))
	return node.Name
}

// report writes the status of the node's plan, as agents do.
func report(ctx context.Context, c client.Client, node string) error {
	plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: node}}
	return c.Status().Patch(ctx, plan, env.MergePatch(`{"status": {"pods": 1}}`))
}

// installForAgents installs the policies on agents and waits until they are in effect.
func installForAgents(t *testing.T) {
	t.Helper()
	server.ServiceAccount(t, env.SystemNamespace, agentAccount, nil)
	install(t, server, "rbac")
	install(t, server, "policies")
	unbound, _ := clientOf(t, server, server.ServiceAccount(t, env.SystemNamespace, agentAccount, nil))
	node := newNode(t)
	eventually(t, "policies on agents in effect", func(ctx context.Context) error {
		return errors.Join(
			rejectedWith("is not bound to a node")(report(ctx, unbound, node)),
			rejectedWith("is not bound to a node")(unbound.Create(ctx, slice(node, "0"), client.DryRunAll)),
			rejectedWith("is not bound to a node")(unbound.Create(ctx, event("default", node), client.DryRunAll)))
	})
}

// rejectedWith returns a check that the error is a rejection that contains text or, if text is
// empty, that there is no error.
func rejectedWith(text string) func(error) error {
	return func(err error) error {
		switch {
		case text == "" && err != nil:
			return fmt.Errorf("%w, want success", err)
		case text != "" && !apierrors.IsForbidden(err):
			return fmt.Errorf("error %v, want a rejection that contains %q", err, text) //nolint:errorlint // It may be nil.
		case text != "" && !strings.Contains(err.Error(), text):
			return fmt.Errorf("%w, want a rejection that contains %q", err, text)
		default:
			return nil
		}
	}
}

// event returns an event as the node's agent writes it.
func event(namespace, node string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, GenerateName: "event-"},
		InvolvedObject:      corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "pod"},
		Reason:              v1alpha1.EventReasonProbeSucceeded,
		Type:                corev1.EventTypeNormal,
		Source:              corev1.EventSource{Component: v1alpha1.EventSourceComponent, Host: node},
		ReportingController: v1alpha1.EventSourceComponent,
		ReportingInstance:   node,
	}
}

// podReference returns the reference to a container of a pod as agents write it.
func podReference(namespace string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "pod", UID: "8a8d2f7e-5a43-4dc5-a0bb-000000000000",
		FieldPath: "spec.containers{main}",
	}
}

func TestAgentReportsForItsOwnNode(t *testing.T) {
	t.Parallel()
	installForAgents(t)
	own, other := newNode(t), newNode(t)
	// The policy applies to agents in any namespace.
	elsewhere := agentOf(t, "elsewhere", own)
	server.GrantAll(t, "elsewhere", agentAccount)
	manager := server.ServiceAccount(t, env.SystemNamespace, "seamark-manager", nil)
	for name, test := range map[string]struct {
		config *rest.Config
		do     func(context.Context, client.Client) error
		want   string
	}{
		"own node": {agentOf(t, env.SystemNamespace, own), func(ctx context.Context, c client.Client) error {
			return report(ctx, c, own)
		}, ""},
		"other node": {agentOf(t, env.SystemNamespace, own), func(ctx context.Context, c client.Client) error {
			return report(ctx, c, other)
		}, `the agent of node "` + own + `" cannot write NodePodProbe "` + other + `"`},
		"unbound token": {server.ServiceAccount(t, env.SystemNamespace, agentAccount, nil), func(ctx context.Context, c client.Client) error {
			return report(ctx, c, own)
		}, "the token is not bound to a node"},
		"own node, other namespace": {elsewhere, func(ctx context.Context, c client.Client) error {
			return report(ctx, c, own)
		}, ""},
		"other node, other namespace": {elsewhere, func(ctx context.Context, c client.Client) error {
			return report(ctx, c, other)
		}, "cannot write NodePodProbe"},
		// RBAC grants these agents all rights: only the policy rejects them.
		"plan of another node": {elsewhere, func(ctx context.Context, c client.Client) error {
			plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: other}}
			return c.Patch(ctx, plan, env.MergePatch(`{"metadata": {"labels": {"seen": "true"}}}`))
		}, "cannot write NodePodProbe"},
		"plan with another name": {elsewhere, func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: other + "-new"}})
		}, "cannot write NodePodProbe"},
		"plan without a name": {elsewhere, func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{GenerateName: own}})
		}, "cannot write NodePodProbe"},
		"delete another node's plan": {elsewhere, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: other}})
		}, "cannot write NodePodProbe"},
		"delete all plans": {elsewhere, func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &v1alpha1.NodePodProbe{})
		}, "cannot write NodePodProbe"},
		"administrator": {server.Config, func(ctx context.Context, c client.Client) error {
			return report(ctx, c, other)
		}, ""},
		"manager": {manager, func(ctx context.Context, c client.Client) error {
			plan := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: other}}
			return c.Patch(ctx, plan, env.MergePatch(`{"spec": {"podProbes": null}}`))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := clientOf(t, server, test.config)
			// Until the API server sees the new role, it rejects the request with another message.
			eventually(t, "response", func(ctx context.Context) error { return rejectedWith(test.want)(test.do(ctx, c)) })
		})
	}
}

func TestAgentWritesEventsAsItself(t *testing.T) {
	t.Parallel()
	installForAgents(t)
	node := newNode(t)
	for name, test := range map[string]struct {
		edit func(*corev1.Event)
		want string
	}{
		"agent's event":    {func(*corev1.Event) {}, ""},
		"failure":          {func(e *corev1.Event) { e.Reason = v1alpha1.EventReasonProbeFailed }, ""},
		"other host":       {func(e *corev1.Event) { e.Source.Host = "other" }, "its own node"},
		"no host":          {func(e *corev1.Event) { e.Source.Host = "" }, "its own node"},
		"other instance":   {func(e *corev1.Event) { e.ReportingInstance = "other" }, "its own node"},
		"other component":  {func(e *corev1.Event) { e.Source.Component = "kubelet" }, "events from kruise-daemon-podprobe"},
		"other controller": {func(e *corev1.Event) { e.ReportingController = "kubelet" }, "events from kruise-daemon-podprobe"},
		"other reason":     {func(e *corev1.Event) { e.Reason = "Killing" }, "with reason"},
		"on a secret":      {func(e *corev1.Event) { e.InvolvedObject.Kind = "Secret" }, "for pods"},

		"longest message": {func(e *corev1.Event) { e.Message = strings.Repeat("é", 512) }, ""},
		"message too long": {
			func(e *corev1.Event) { e.Message = strings.Repeat("é", 512) + "m" }, "message: an event of an agent can have at most 1024 bytes",
		},
		"error":               {func(e *corev1.Event) { e.Reason, e.Type = v1alpha1.EventReasonProbeError, corev1.EventTypeWarning }, ""},
		"other type":          {func(e *corev1.Event) { e.Type = "Other" }, "type Normal or Warning"},
		"action":              {func(e *corev1.Event) { e.Action = "Probe" }, "no action, related or series"},
		"related":             {func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: "a"} }, "no action, related or series"},
		"series":              {func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 2} }, "no action, related or series"},
		"pod of the agent":    {func(e *corev1.Event) { e.InvolvedObject = podReference(e.Namespace) }, ""},
		"other API version":   {func(e *corev1.Event) { e.InvolvedObject.APIVersion = "v2" }, "involvedObject: "},
		"longest field path":  {func(e *corev1.Event) { e.InvolvedObject.FieldPath = strings.Repeat("f", 128) }, ""},
		"field path too long": {func(e *corev1.Event) { e.InvolvedObject.FieldPath = strings.Repeat("f", 129) }, "involvedObject: "},
		"name too long":       {func(e *corev1.Event) { e.InvolvedObject.Name = strings.Repeat("n", 254) }, "involvedObject: "},
		"UID too long":        {func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(strings.Repeat("u", 129)) }, "involvedObject: "},
		"version of the pod":  {func(e *corev1.Event) { e.InvolvedObject.ResourceVersion = "1" }, "involvedObject: "},
		"annotation":          {func(e *corev1.Event) { e.Annotations = map[string]string{"a": "b"} }, "metadata: "},
		"label":               {func(e *corev1.Event) { e.Labels = map[string]string{"a": "b"} }, "metadata: "},
		"finalizer":           {func(e *corev1.Event) { e.Finalizers = []string{"example.com/a"} }, "metadata: "},
		"owner":               {func(e *corev1.Event) { e.OwnerReferences = []metav1.OwnerReference{ownedBy(node)} }, "metadata: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := server.Namespace(t)
			agent, _ := clientOf(t, server, agentOf(t, env.SystemNamespace, node))
			e := event(namespace, node)
			test.edit(e)
			expect.Success(t, rejectedWith(test.want)(agent.Create(t.Context(), e)))
		})
	}
	t.Run("update own event", func(t *testing.T) {
		t.Parallel()
		agent, _ := clientOf(t, server, agentOf(t, env.SystemNamespace, node))
		own := event(server.Namespace(t), node)
		expect.NoError(t, agent.Create(t.Context(), own))
		expect.Success(t, agent.Patch(t.Context(), own.DeepCopy(), env.MergePatch(`{"count": 2}`)))
		expect.Success(t, server.Client.Patch(t.Context(), own.DeepCopy(), env.MergePatch(`{"metadata": {"annotations": {"a": "b"}}}`)))
		for patch, want := range map[string]string{
			`{"count": 3}`: "",
			`{"metadata": {"annotations": {"a": "c"}}}`:          "metadata: ",
			`{"message": "` + strings.Repeat("m", 1025) + `"}`:   "message: ",
			`{"series": {"count": 2, "lastObservedTime": null}}`: "no action, related or series",
			`{"involvedObject": {"resourceVersion": "1"}}`:       "involvedObject: ",
		} {
			if err := rejectedWith(want)(agent.Patch(t.Context(), own.DeepCopy(), env.MergePatch(patch))); err != nil {
				t.Errorf("%.60s: %v", patch, err)
			}
		}
	})
	t.Run("take over another agent's event", func(t *testing.T) {
		t.Parallel()
		agent, _ := clientOf(t, server, agentOf(t, env.SystemNamespace, node))
		foreign := event(server.Namespace(t), "other")
		expect.NoError(t, server.Client.Create(t.Context(), foreign))
		err := agent.Patch(t.Context(), foreign, env.MergePatch(`{"source": {"host": "`+node+`"}, "reportingInstance": "`+node+`"}`))
		expect.Success(t, rejectedWith("its own node")(err))
	})
}
