// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// slice returns a ProbeReport of the node with the suffix of its name, and edits it.
func slice(node, suffix string, edits ...func(*seamarkv1alpha1.ProbeReport)) *seamarkv1alpha1.ProbeReport {
	report := &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: node + "." + suffix},
		NodeName:   node,
		Pods:       []seamarkv1alpha1.PodReport{{Namespace: "ns", Name: "pod", UID: "uid"}},
	}
	for _, edit := range edits {
		edit(report)
	}
	return report
}

// owned returns an edit that sets the owner of a report.
func owned(owner metav1.OwnerReference) func(*seamarkv1alpha1.ProbeReport) {
	return func(r *seamarkv1alpha1.ProbeReport) { r.OwnerReferences = []metav1.OwnerReference{owner} }
}

// ownedBy returns the reference to a node, as agents set it.
func ownedBy(node string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node, UID: "00000000-0000-0000-0000-000000000001"}
}

// unlimited returns the configuration of an agent on the node to which RBAC grants all rights,
// so that only the policies reject its requests.
func unlimited(t *testing.T, e *env.Env, node string) *rest.Config {
	t.Helper()
	namespace := e.Namespace(t)
	config := agentIn(t, e, namespace, node)
	e.GrantAll(t, namespace, agentAccount)
	return config
}

// TestAgentWritesReportsOfItsOwnNode writes reports as an agent does, with the rights of an agent.
func TestAgentWritesReportsOfItsOwnNode(t *testing.T) {
	t.Parallel()
	installForAgents(t)
	node := newNode(t)
	agent, warned := clientOf(t, server, agentOf(t, env.SystemNamespace, node))
	for _, suffix := range []string{"0", "7", "10", "399"} {
		report := slice(node, suffix, owned(ownedBy(node)))
		err := agent.Create(t.Context(), report)
		if err == nil {
			// Users may label a report: the agent keeps the labels.
			err = server.Client.Patch(t.Context(), report.DeepCopy(), env.MergePatch(
				`{"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/a"]}}`))
		}
		if err == nil {
			err = agent.Patch(t.Context(), report.DeepCopy(), env.MergePatch(
				`{"nodeName": "`+node+`", "pods": null, "metadata": {"ownerReferences": null}}`))
		}
		if err == nil {
			err = server.Client.Get(t.Context(), client.ObjectKeyFromObject(report), report)
		}
		if err == nil {
			report.Pods = slice(node, suffix).Pods
			err = agent.Update(t.Context(), report)
		}
		if err == nil {
			err = agent.Delete(t.Context(), report)
		}
		if err != nil {
			t.Errorf("slice %s: %v", suffix, err)
		}
	}
	var list seamarkv1alpha1.ProbeReportList
	expect.Success(t, agent.List(t.Context(), &list, client.MatchingFields{"nodeName": node}))
	if texts := warned.take(); len(texts) > 0 {
		t.Errorf("warnings: %q", texts)
	}
}

// TestAgentCannotWriteReportsOfOtherNodes is about names. RBAC grants the agents all rights. The
// name of node `.1` is that of the second slice of the agent's node.
func TestAgentCannotWriteReportsOfOtherNodes(t *testing.T) {
	t.Parallel()
	installForAgents(t)
	node, other := newNode(t), newNode(t)
	dotted := node + ".1"
	for _, stored := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: dotted}},
		slice(node, "0"), slice(node, "1"), slice(dotted, "0"), slice(other, "0"),
	} {
		expect.NoError(t, server.Client.Create(t.Context(), stored))
	}
	mine, dots := unlimited(t, server, node), unlimited(t, server, dotted)
	create := func(report *seamarkv1alpha1.ProbeReport) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.Create(ctx, report) }
	}
	patch := func(report *seamarkv1alpha1.ProbeReport, body string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return c.Patch(ctx, report, env.MergePatch(body)) }
	}
	const empty = `{"pods": null}`
	for name, test := range map[string]struct {
		config *rest.Config
		do     func(context.Context, client.Client) error
	}{
		"create for another node":                 {mine, create(slice(other, "1"))},
		"patch another node's":                    {mine, patch(slice(other, "0"), empty)},
		"own another node's":                      {mine, patch(slice(other, "0"), `{"metadata": {"ownerReferences": []}}`)},
		"block another node's":                    {mine, patch(slice(other, "0"), `{"metadata": {"finalizers": ["example.com/a"]}}`)},
		"create for a node named like a slice":    {mine, create(slice(dotted, "1"))},
		"patch that of a node named like a slice": {mine, patch(slice(dotted, "0"), empty)},
		"delete that of a node named like a slice": {mine, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, slice(dotted, "0"))
		}},
		"patch a slice named like the node":  {dots, patch(slice(node, "1"), empty)},
		"create a slice named like the node": {dots, create(slice(node, "1"))},
		"delete a slice named like the node": {dots, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, slice(node, "1"))
		}},
		"delete another node's": {mine, func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, slice(other, "0"))
		}},
		"delete all": {mine, func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &seamarkv1alpha1.ProbeReport{})
		}},
		"delete all of its own node": {mine, func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, &seamarkv1alpha1.ProbeReport{}, client.MatchingFields{"nodeName": node})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := clientOf(t, server, test.config)
			rejected := rejectedWith("an agent can only write the ProbeReports of its own node")
			expect.Success(t, rejected(test.do(t.Context(), c)))
		})
	}
	t.Run("generated name", func(t *testing.T) {
		t.Parallel()
		c, _ := clientOf(t, server, mine)
		report := slice(node, "")
		report.Name, report.GenerateName = "", node+".1"
		// The API server appends five characters.
		if err := c.Create(t.Context(), report); !apierrors.IsInvalid(err) {
			t.Errorf("error %v, want it to be invalid", err)
		}
	})
	t.Run("nodeName is immutable", func(t *testing.T) {
		t.Parallel()
		c, _ := clientOf(t, server, mine)
		err := c.Patch(t.Context(), slice(node, "0"), env.MergePatch(`{"nodeName": "`+other+`"}`))
		if !apierrors.IsInvalid(err) {
			t.Errorf("error %v, want it to be invalid", err)
		}
	})
}

// TestAgentSetsNoOtherMetadataOfReports uses an agent with all rights. Labels and annotations are
// allowed, because mutating webhooks may add them to every write.
func TestAgentSetsNoOtherMetadataOfReports(t *testing.T) {
	t.Parallel()
	installForAgents(t)
	node, other := newNode(t), newNode(t)
	stored := slice(node, "0", func(r *seamarkv1alpha1.ProbeReport) {
		r.Finalizers, r.Labels = []string{"example.com/a"}, map[string]string{"a": "b"}
	})
	expect.NoError(t, server.Client.Create(t.Context(), stored))
	agent, _ := clientOf(t, server, unlimited(t, server, node))
	const (
		owners     = "metadata.ownerReferences: the agent of node"
		finalizers = "metadata.finalizers"
	)
	edited := func(edit func(*metav1.OwnerReference)) func(*seamarkv1alpha1.ProbeReport) {
		owner := ownedBy(node)
		edit(&owner)
		return owned(owner)
	}
	for name, test := range map[string]struct {
		edit func(*seamarkv1alpha1.ProbeReport)
		want string
	}{
		"own node":          {edited(func(*metav1.OwnerReference) {}), ""},
		"controller":        {edited(func(o *metav1.OwnerReference) { o.Controller = ptr.To(true) }), ""},
		"not blocked":       {edited(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(false) }), ""},
		"blocked":           {edited(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = ptr.To(true) }), owners},
		"other node":        {owned(ownedBy(other)), owners},
		"other kind":        {edited(func(o *metav1.OwnerReference) { o.Kind = "Namespace" }), owners},
		"other API version": {edited(func(o *metav1.OwnerReference) { o.APIVersion = "apps/v1" }), owners},
		"second owner": {func(r *seamarkv1alpha1.ProbeReport) {
			r.OwnerReferences = []metav1.OwnerReference{ownedBy(node), ownedBy(other)}
		}, owners},
		"finalizer":  {func(r *seamarkv1alpha1.ProbeReport) { r.Finalizers = []string{"example.com/a"} }, finalizers},
		"label":      {func(r *seamarkv1alpha1.ProbeReport) { r.Labels = map[string]string{"a": "b"} }, ""},
		"annotation": {func(r *seamarkv1alpha1.ProbeReport) { r.Annotations = map[string]string{"a": "b"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := agent.Create(t.Context(), slice(node, "1", test.edit), client.DryRunAll)
			expect.Success(t, rejectedWith(test.want)(err))
		})
	}
	otherOwner := `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "` + other + `", "uid": "1"}]}}`
	for name, test := range map[string]struct{ patch, want string }{
		"keep":                 {`{"pods": null}`, ""},
		"change an owner":      {otherOwner, owners},
		"add a finalizer":      {`{"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}`, finalizers},
		"remove a finalizer":   {`{"metadata": {"finalizers": null}}`, finalizers},
		"change a label":       {`{"metadata": {"labels": {"a": "c"}}}`, ""},
		"remove the label":     {`{"metadata": {"labels": null}}`, ""},
		"add an annotation":    {`{"metadata": {"annotations": {"a": "b"}}}`, ""},
		"change nothing extra": {`{"nodeName": "` + node + `"}`, ""},
	} {
		t.Run("update: "+name, func(t *testing.T) {
			t.Parallel()
			err := agent.Patch(t.Context(), slice(node, "0"), env.MergePatch(test.patch))
			expect.Success(t, rejectedWith(test.want)(err))
		})
	}
}

// TestReportPolicyDoesNotDependOnTheCRD uses a CRD without rules: the policy alone keeps the
// agents to their nodes.
func TestReportPolicyDoesNotDependOnTheCRD(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.UnvalidatedCRDs())
	install(t, e, "policies")
	mine := unlimited(t, e, "a")
	unbound, _ := clientOf(t, e, unlimited(t, e, ""))
	const name, field = "an agent can only write the ProbeReports of its own node", "nodeName must be"
	eventually(t, "policies in effect", func(ctx context.Context) error {
		return rejectedWith("the token is not bound to a node")(unbound.Create(ctx, slice("a", "0"), client.DryRunAll))
	})
	expect.NoError(t, e.Client.Create(t.Context(), slice("b", "0", func(r *seamarkv1alpha1.ProbeReport) { r.Name = "a.1" })))
	c, _ := clientOf(t, e, mine)
	for suffix, want := range map[string]string{
		"0": "", "99": "", "399": "",
		"400": name, "999": name, "1000": name, "10000": name, "00": name, "01": name, "a": name, "1.0": name, "1a": name, "0.a": name,
	} {
		if err := rejectedWith(want)(c.Create(t.Context(), slice("a", suffix), client.DryRunAll)); err != nil {
			t.Errorf("slice %q: %v", suffix, err)
		}
	}
	// An agent deletes what an earlier policy permitted.
	for suffix, want := range map[string]string{"400": "", "9999": "", "0400": name, "4.0": name} {
		expect.NoError(t, e.Client.Create(t.Context(), slice("a", suffix)))
		if err := rejectedWith(want)(c.Delete(t.Context(), slice("a", suffix))); err != nil {
			t.Errorf("delete slice %q: %v", suffix, err)
		}
	}
	other := func(r *seamarkv1alpha1.ProbeReport) { r.NodeName = "b" }
	generated := func(r *seamarkv1alpha1.ProbeReport) { r.Name, r.GenerateName = "", "a.1" }
	err := errors.Join(
		wrapped("other nodeName", rejectedWith(field)(c.Create(t.Context(), slice("a", "0", other)))),
		wrapped("generated name", rejectedWith(name)(c.Create(t.Context(), slice("a", "0", generated)))),
		wrapped("change nodeName to its own", rejectedWith(field)(
			c.Patch(t.Context(), slice("a", "1"), env.MergePatch(`{"nodeName": "a"}`)))),
		wrapped("delete with another nodeName", rejectedWith(field)(c.Delete(t.Context(), slice("a", "1")))),
	)
	expect.Success(t, err)
}

func wrapped(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
