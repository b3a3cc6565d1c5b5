// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// stolen returns a client with a token of a program in the namespace, which may do everything that no policy refuses.
func stolen(t *testing.T, namespace, account string) client.Client {
	t.Helper()
	config := server.ServiceAccount(t, namespace, account, nil)
	server.GrantAll(t, namespace, account)
	c, _ := clientOf(t, server, config)
	return c
}

// TestWebhookConfigurations writes webhook configurations with stolen tokens of programs.
func TestWebhookConfigurations(t *testing.T) {
	t.Parallel()
	install(t, server, "policies")
	own := server.Namespace(t)
	workloads, manager := stolen(t, own, workloadsAccount), stolen(t, own, "seamark-manager")
	set := newSet("", nil)
	set.Name, set.Status.InForce = "logs", &v1alpha1.SidecarSetInForce{Selector: set.Spec.Selector}
	type hook = admissionregistrationv1.MutatingWebhook
	at := func(namespace, name string) hook {
		service := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
		return entries.Server{Namespace: own, Client: admissionregistrationv1.WebhookClientConfig{Service: service}}.Entry(set)
	}
	edited := func(edit func(h *hook)) hook {
		h := at(own, "seamark-injector")
		edit(&h)
		return h
	}
	namespaces := func(operator metav1.LabelSelectorOperator, names ...string) hook {
		return edited(func(h *hook) {
			h.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
			}}
		})
	}
	for _, name := range []string{"seamark-sidecarsets-0", "seamark-webhook", "of-others"} {
		stored := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		expect.NoError(t, server.Client.Create(t.Context(), stored))
	}
	if err := server.Client.Create(
		t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "seamark-sidecarsets-0"}},
	); err != nil {
		t.Fatal(err)
	}
	type write func(ctx context.Context, c client.Client) error
	put := func(name string, hooks ...hook) write {
		return func(ctx context.Context, c client.Client) error {
			changed := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if err := server.Client.Get(ctx, client.ObjectKeyFromObject(changed), changed); err != nil {
				return err
			}
			changed.Webhooks = hooks
			return c.Update(ctx, changed, client.DryRunAll)
		}
	}
	const (
		names, elsewhere, broad = "it can only update seamark-sidecarsets-0", "cannot send requests of entry", "can only have pods that are created"
		first                   = "seamark-sidecarsets-0"
	)
	fine := at(own, "seamark-injector")
	for name, test := range map[string]struct {
		as    client.Client
		write write
		want  string
	}{
		"its entries":           {workloads, put(first, fine), ""},
		"no entries":            {workloads, put(first), ""},
		"named namespaces":      {workloads, put(first, namespaces(metav1.LabelSelectorOpIn, "games")), ""},
		"another Service":       {workloads, put(first, at(own, "evil")), elsewhere},
		"another namespace":     {workloads, put(first, at("default", "seamark-injector")), elsewhere},
		"the manager's Service": {workloads, put(first, at(own, "seamark-webhook")), elsewhere},
		"URL": {
			workloads, put(first, edited(func(h *hook) { h.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://evil/")} })), elsewhere,
		},
		"other objects": {workloads, put(first, edited(func(h *hook) { h.Rules[0].Resources = []string{"pods", "secrets"} })), broad},
		"all resources": {workloads, put(first, edited(func(h *hook) { h.Rules[0].Resources = []string{"*"} })), broad},
		"another group": {workloads, put(first, edited(func(h *hook) { h.Rules[0].APIGroups = []string{"*"} })), broad},
		"updates": {
			workloads, put(first, edited(func(h *hook) { h.Rules[0].Operations = []admissionregistrationv1.OperationType{"*"} })), broad,
		},
		"all namespaces":          {workloads, put(first, edited(func(h *hook) { h.NamespaceSelector = nil })), broad},
		"kube-system":             {workloads, put(first, namespaces(metav1.LabelSelectorOpIn, "games", "kube-system")), broad},
		"its own namespace":       {workloads, put(first, namespaces(metav1.LabelSelectorOpNotIn, "kube-system")), broad},
		"configuration of others": {workloads, put("of-others", fine), names},
		"of the manager":          {workloads, put("seamark-webhook", fine), names},
		"create": {workloads, func(ctx context.Context, c client.Client) error {
			return c.Create(
				ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "seamark-sidecarsets-3"}}, client.DryRunAll,
			)
		}, names},
		"create a validating one": {workloads, func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, client.DryRunAll)
		}, names},
		"validating one of the name": {workloads, func(ctx context.Context, c client.Client) error {
			return c.Patch(
				ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: first}},
				env.MergePatch(`{"metadata": {"labels": {"a": "b"}}}`), client.DryRunAll,
			)
		}, names},
		"delete": {workloads, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: first}}, client.DryRunAll)
		}, names},
		"delete all": {workloads, func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{}, client.DryRunAll)
		}, names},
		"manager, its own":              {manager, put("seamark-webhook", at(own, "seamark-webhook")), ""},
		"manager, another Service":      {manager, put("seamark-webhook", fine), elsewhere},
		"manager, those of SidecarSets": {manager, put(first, fine), "it can only update seamark-webhook"},
		"manager, other objects": {manager, put("seamark-webhook", func() hook {
			h := at(own, "seamark-webhook")
			h.Rules[0].Resources = []string{"*/*"}
			return h
		}()), broad},
		"another user": {server.Client, put("of-others", at("default", "any")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "answer", func(ctx context.Context) error { return rejectedWith(test.want)(test.write(ctx, test.as)) })
		})
	}
}

// TestManagerPlans writes plans with a stolen token of the manager.
func TestManagerPlans(t *testing.T) {
	t.Parallel()
	install(t, server, "policies")
	manager := stolen(t, server.Namespace(t), "seamark-manager")
	pod := func(namespace, ip string, edits ...func(p *corev1.Probe)) v1alpha1.PodProbe {
		probe := v1alpha1.ContainerProbe{Name: "m#p", ContainerName: "main"}
		probe.Probe.HTTPGet = &corev1.HTTPGetAction{}
		probe.Probe.HTTPGet.Port.IntVal = 80
		for _, edit := range edits {
			edit(&probe.Probe.Probe)
		}
		return v1alpha1.PodProbe{Namespace: namespace, Name: "a", UID: "u", IP: ip, Probes: []v1alpha1.ContainerProbe{probe}}
	}
	const excluded, foreign = "cannot plan probes of pod kube-system/a: these namespaces are excluded", "its IP must be the address of a pod"
	for name, test := range map[string]struct {
		pods []v1alpha1.PodProbe
		want string
	}{
		"no pods":             {nil, ""},
		"a pod":               {[]v1alpha1.PodProbe{pod("games", "10.0.0.1"), pod("games", "fd00::1")}, ""},
		"without an address":  {[]v1alpha1.PodProbe{pod("games", "")}, ""},
		"a pod of the system": {[]v1alpha1.PodProbe{pod("games", "10.0.0.1"), pod("kube-system", "10.0.0.2")}, excluded},
		"metadata service":    {[]v1alpha1.PodProbe{pod("games", "169.254.169.254")}, foreign},
		"loopback":            {[]v1alpha1.PodProbe{pod("games", "127.0.0.1")}, foreign},
		"IPv6 loopback":       {[]v1alpha1.PodProbe{pod("games", "::1")}, foreign},
		"mapped IPv4 address": {[]v1alpha1.PodProbe{pod("games", "::ffff:127.0.0.1")}, foreign},
		"name":                {[]v1alpha1.PodProbe{pod("games", "metadata.google.internal")}, foreign},
		"host":                {[]v1alpha1.PodProbe{pod("games", "10.0.0.1", func(p *corev1.Probe) { p.HTTPGet.Host = "10.0.0.2" })}, "with a host"},
		"host of a socket": {[]v1alpha1.PodProbe{pod("games", "10.0.0.1", func(p *corev1.Probe) {
			p.TCPSocket, p.HTTPGet = &corev1.TCPSocketAction{Host: "10.0.0.2", Port: p.HTTPGet.Port}, nil
		})}, "with a host"},
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "answer", func(ctx context.Context) error {
				return rejectedWith(test.want)(manager.Create(ctx, &seamarkv1alpha1.ProbePlan{
					ObjectMeta: metav1.ObjectMeta{Name: "n1.0"}, NodeName: "n1", Pods: test.pods,
				}, client.DryRunAll))
			})
			eventually(t, "answer for a NodePodProbe", func(ctx context.Context) error {
				return rejectedWith(test.want)(manager.Create(ctx, &v1alpha1.NodePodProbe{
					ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: v1alpha1.NodePodProbeSpec{PodProbes: test.pods},
				}, client.DryRunAll))
			})
		})
	}
}

// TestManagerChangesNoExcludedPods patches the status of pods with a stolen token of the manager.
func TestManagerChangesNoExcludedPods(t *testing.T) {
	t.Parallel()
	install(t, server, "policies")
	manager := stolen(t, server.Namespace(t), "seamark-manager")
	const metadata, status = "metadata: seamark-manager can only remove", "status: seamark-manager can only remove"
	eventually(t, "policy in effect", func(ctx context.Context) error {
		return rejectedWith(metadata)(patched("status", `{"metadata": {"labels": {"x": "y"}}}`)(ctx, manager, marked(t, "kube-system")))
	})
	tests := map[string]struct{ patch, want string }{
		"add a label":               {`{"metadata": {"labels": {"x": "y"}}}`, metadata},
		"change a label":            {`{"metadata": {"labels": {"a": "c"}}}`, metadata},
		"remove a label":            {`{"metadata": {"labels": {"a": null}}}`, ""},
		"remove all labels":         {`{"metadata": {"labels": null}}`, ""},
		"add an annotation":         {`{"metadata": {"annotations": {"x": "y"}}}`, metadata},
		"remove an annotation":      {`{"metadata": {"annotations": {"a": null}}}`, ""},
		"remove a finalizer":        {`{"metadata": {"finalizers": null}}`, "metadata.finalizers: seamark-manager cannot change"},
		"add a condition":           {`{"status": {"conditions": [{"type": "Playing", "status": "True"}]}}`, status},
		"change a condition":        {`{"status": {"conditions": [{"type": "Idle", "status": "False"}]}}`, status},
		"remove a condition":        {`{"status": {"conditions": [{"type": "Idle", "$patch": "delete"}]}}`, ""},
		"change the phase":          {`{"status": {"phase": "Failed"}}`, status},
		"add a field of the status": {`{"status": {"reason": "Evicted"}}`, status},
	}
	for _, kind := range v1alpha1.NativePodConditionTypes() {
		patch := fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "$patch": "delete"}]}}`, kind)
		tests["remove "+string(kind)] = struct{ patch, want string }{patch, status}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for namespace, want := range map[string]string{"kube-system": test.want, server.Namespace(t): ""} {
				if err := rejectedWith(want)(patched("status", test.patch)(t.Context(), manager, marked(t, namespace))); err != nil {
					t.Errorf("in namespace %s: %v", namespace, err)
				}
			}
		})
	}
	if err := patched("status", `{"status": {"phase": "Failed"}}`)(t.Context(), server.Client, marked(t, "kube-system")); err != nil {
		t.Errorf("a kubelet: %v", err)
	}
}

// marked creates a running pod with marks.
func marked(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "marked-", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"},
			Finalizers: []string{"example.com/hook"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	expect.NoError(t, server.Client.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	for _, kind := range append(v1alpha1.NativePodConditionTypes(), "Idle") {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	expect.NoError(t, server.Client.Status().Update(t.Context(), pod))
	return pod
}
