// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

const (
	authorPolicy = "seamark-marker-author"
	denyLabel    = "seamark.dev/test-deny"
)

// The rights of authors: to markers, and those that the policy requires.
var (
	writeMarkers = rbacv1.PolicyRule{
		APIGroups: []string{"apps.kruise.io"}, Resources: []string{"podprobemarkers", "podprobemarkers/status"},
		Verbs: []string{"create", "update", "patch", "get"},
	}
	mayExec  = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}}
	mayPatch = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}
)

// installForAuthors installs the policy with a binding that warns, and one
// that denies in namespaces with denyLabel. It waits until both are in effect.
func installForAuthors(t *testing.T) {
	t.Helper()
	install(t, server, "policies")
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deny"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        authorPolicy,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{denyLabel: "true"}},
			},
		},
	}
	expect.NoError(t, client.IgnoreAlreadyExists(server.Client.Create(t.Context(), binding)))
	lenient, strict := namespaces(t)
	user := env.UserSubject("early")
	c, warned := clientOf(t, server, server.User(t, user.Name))
	for _, namespace := range []string{lenient, strict} {
		server.Grant(t, namespace, user, writeMarkers)
	}
	eventually(t, "policy on authors in effect", func(ctx context.Context) error {
		err := c.Create(ctx, markerIn(lenient, execProbe()), client.DryRunAll)
		if err == nil && len(warned.take()) == 0 {
			err = errors.New("no warning")
		}
		return errors.Join(err,
			rejectedWith("cannot create pods/exec")(c.Create(ctx, markerIn(strict, execProbe()), client.DryRunAll)))
	})
}

// namespaces creates a namespace in which the policy warns and one in which it denies.
func namespaces(t *testing.T) (lenient, strict string) {
	t.Helper()
	lenient, strict = server.Namespace(t), server.Namespace(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strict}}
	expect.NoError(t, server.Client.Patch(t.Context(), namespace, env.MergePatch(`{"metadata": {"labels": {"`+denyLabel+`": "true"}}}`)))
	return lenient, strict
}

func markerIn(namespace string, probes ...*builders.ProbeBuilder) *v1alpha1.PodProbeMarker {
	b := builders.Marker(namespace, "")
	for _, p := range probes {
		b.Probe(p)
	}
	marker := b.Unsaved().Build()
	marker.GenerateName = "marker-"
	return marker
}

func execProbe() *builders.ProbeBuilder {
	return builders.Probe("busy").Label(v1alpha1.ProbeSucceeded, "busy", "true")
}

func httpProbe() *builders.ProbeBuilder {
	return builders.Probe("web").Condition("game.io/web").Handler(corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)},
	})
}

// noExec and noPatch are the policy's messages to a user without the right.
func noExec(user, namespace, probes string) string {
	return fmt.Sprintf(`user %q cannot create pods/exec in namespace %q, which is required for probes with exec: %s`, user, namespace, probes)
}

func noPatch(user, namespace, probes string) string {
	return fmt.Sprintf(`user %q cannot patch pods in namespace %q, which is required for probes with marks: %s`, user, namespace, probes)
}

// author is a user with rights in one namespace.
type author struct {
	client.Client
	warned    *warnings
	name      string
	namespace string
	denied    bool
}

// authors returns the same user in a namespace in which the policy warns and in one in which
// it denies.
func authors(t *testing.T, subject rbacv1.Subject, config *rest.Config, rules ...rbacv1.PolicyRule) map[string]author {
	t.Helper()
	lenient, strict := namespaces(t)
	name := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		name = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	all := map[string]author{}
	for mode, namespace := range map[string]string{"Warn": lenient, "Deny": strict} {
		c, warned := clientOf(t, server, config)
		server.Grant(t, namespace, subject, append(rules, writeMarkers)...)
		all[mode] = author{c, warned, name, namespace, mode == "Deny"}
	}
	return all
}

// check checks the response to a request of an author with missing rights: warnings for all of
// them or, if the policy denies, an error for the first.
func (a author) check(err error, missing ...func(user, namespace string) string) error {
	var texts []string
	for _, text := range missing {
		texts = append(texts, text(a.name, a.namespace))
	}
	warned := a.warned.take()
	switch {
	case a.denied && len(texts) > 0:
		return rejectedWith(texts[0])(err)
	case err != nil:
		return fmt.Errorf("%w, want success", err)
	}
	diff := cmp.Diff(texts, warned)
	return await.ErrorIf(diff != "", "warnings (-want +got):\n%s", diff)
}

func missing(text func(user, namespace, probes string) string, probes string) func(user, namespace string) string {
	return func(user, namespace string) string { return text(user, namespace, probes) }
}

type missingTexts = []func(user, namespace string) string

func TestAuthorOfNewMarker(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	both := []*builders.ProbeBuilder{execProbe(), httpProbe()}
	for name, test := range map[string]struct {
		rules  []rbacv1.PolicyRule
		probes []*builders.ProbeBuilder
		want   missingTexts
	}{
		"no rights": {nil, both, missingTexts{missing(noExec, "busy"), missing(noPatch, "busy and 1 more")}},
		"may exec":  {[]rbacv1.PolicyRule{mayExec}, both, missingTexts{missing(noPatch, "busy and 1 more")}},
		"may patch": {[]rbacv1.PolicyRule{mayPatch}, both, missingTexts{missing(noExec, "busy")}},
		"may both":  {[]rbacv1.PolicyRule{mayExec, mayPatch}, both, nil},
		"no command": {
			[]rbacv1.PolicyRule{mayPatch}, []*builders.ProbeBuilder{httpProbe()}, nil,
		},
		"condition only": {
			nil, []*builders.ProbeBuilder{httpProbe()}, missingTexts{missing(noPatch, "web")},
		},
		"get pods/exec only": {
			[]rbacv1.PolicyRule{mayPatch, {APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get"}}},
			both, missingTexts{missing(noExec, "busy")},
		},
	} {
		user := env.UserSubject("new-" + strings.ReplaceAll(name, " ", "-"))
		account := env.ServiceAccountSubject(server.Namespace(t), "controller")
		for kind, as := range map[string]map[string]author{
			"user":    authors(t, user, server.User(t, user.Name), test.rules...),
			"account": authors(t, account, server.ServiceAccount(t, account.Namespace, account.Name, nil), test.rules...),
		} {
			for mode, a := range as {
				t.Run(name+"/"+kind+"/"+mode, func(t *testing.T) {
					t.Parallel()
					eventually(t, "response", func(ctx context.Context) error {
						return a.check(a.Create(ctx, markerIn(a.namespace, test.probes...)), test.want...)
					})
				})
			}
		}
	}
}

func probe(m *v1alpha1.PodProbeMarker, name string) *v1alpha1.PodContainerProbe {
	for i := range m.Spec.Probes {
		if m.Spec.Probes[i].Name == name {
			return &m.Spec.Probes[i]
		}
	}
	return nil
}

func TestAuthorOfChange(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	for name, test := range map[string]struct {
		edit func(*v1alpha1.PodProbeMarker)
		want missingTexts
	}{
		"no change":        {func(*v1alpha1.PodProbeMarker) {}, nil},
		"label":            {func(m *v1alpha1.PodProbeMarker) { m.Labels = map[string]string{"a": "b"} }, nil},
		"finalizer":        {func(m *v1alpha1.PodProbeMarker) { m.Finalizers = []string{v1alpha1.PodProbeMarkerFinalizer} }, nil},
		"removed probe":    {func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = m.Spec.Probes[:1] }, nil},
		"reordered probes": {func(m *v1alpha1.PodProbeMarker) { p := m.Spec.Probes; p[0], p[1] = p[1], p[0] }, nil},
		"command": {
			func(m *v1alpha1.PodProbeMarker) { probe(m, "busy").Probe.Exec.Command = []string{"/other"} },
			missingTexts{missing(noExec, "busy"), missing(noPatch, "busy")},
		},
		"container": {
			func(m *v1alpha1.PodProbeMarker) { probe(m, "busy").ContainerName = "other" }, missingTexts{missing(noExec, "busy"), missing(noPatch, "busy")},
		},
		"port": {
			func(m *v1alpha1.PodProbeMarker) { probe(m, "web").Probe.HTTPGet.Port = intstr.FromInt32(81) }, missingTexts{missing(noPatch, "web")},
		},
		"condition type": {func(m *v1alpha1.PodProbeMarker) { probe(m, "web").PodConditionType = "game.io/x" }, missingTexts{missing(noPatch, "web")}},
		"name":           {func(m *v1alpha1.PodProbeMarker) { probe(m, "web").Name = "page" }, missingTexts{missing(noPatch, "page")}},
		"httpGet to exec": {func(m *v1alpha1.PodProbeMarker) {
			probe(m, "web").Probe.ProbeHandler = probe(m, "busy").Probe.ProbeHandler
		}, missingTexts{missing(noExec, "web"), missing(noPatch, "web")}},
		"added probe": {func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, *execProbe().Build())
			m.Spec.Probes[2].Name = "more"
		}, missingTexts{missing(noExec, "more"), missing(noPatch, "more")}},
		"period": {func(m *v1alpha1.PodProbeMarker) { probe(m, "web").Probe.PeriodSeconds = 1 }, missingTexts{missing(noPatch, "web")}},
	} {
		user := env.UserSubject("change-" + strings.ReplaceAll(name, " ", "-"))
		for mode, a := range authors(t, user, server.User(t, user.Name)) {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				a.checkEdit(t, markerIn(a.namespace, execProbe(), httpProbe()), test.edit, test.want)
			})
		}
	}
}

// checkEdit checks the response to an edit of a stored marker.
func (a author) checkEdit(t *testing.T, marker *v1alpha1.PodProbeMarker, edit func(*v1alpha1.PodProbeMarker), want missingTexts) {
	t.Helper()
	expect.NoError(t, server.Client.Create(t.Context(), marker))
	eventually(t, "response", func(ctx context.Context) error {
		edited := marker.DeepCopy()
		edit(edited)
		return a.check(a.Update(ctx, edited), want...)
	})
}

func TestStatusNeedsNoOtherRights(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	user := env.UserSubject("status")
	for mode, a := range authors(t, user, server.User(t, user.Name)) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			marker := markerIn(a.namespace, execProbe())
			expect.NoError(t, server.Client.Create(t.Context(), marker))
			eventually(t, "response", func(ctx context.Context) error {
				return a.check(a.Status().Patch(ctx, marker.DeepCopy(), env.MergePatch(`{"status": {"matchedPods": 3}}`)))
			})
		})
	}
}

// TestManagerWritesOnlyFinalizers uses the manager's service account and role.
func TestManagerWritesOnlyFinalizers(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	manager, warned := clientOf(t, server, server.ServiceAccount(t, env.SystemNamespace, "seamark-manager", nil))
	install(t, server, "rbac")
	_, strict := namespaces(t)
	marker := markerIn(strict, execProbe(), httpProbe())
	expect.NoError(t, server.Client.Create(t.Context(), marker))
	for _, finalizers := range []string{`["` + v1alpha1.PodProbeMarkerFinalizer + `"]`, `null`} {
		eventually(t, "finalizers "+finalizers, func(ctx context.Context) error {
			return manager.Patch(ctx, marker.DeepCopy(), env.MergePatch(`{"metadata": {"finalizers": `+finalizers+`}}`))
		})
	}
	if texts := warned.take(); len(texts) > 0 {
		t.Errorf("warnings: %q", texts)
	}
	// A compromised manager can't run its own commands with a marker.
	err := manager.Patch(t.Context(), marker.DeepCopy(), client.RawPatch("application/json-patch+json",
		[]byte(`[{"op": "replace", "path": "/spec/probes/0/probe/exec/command", "value": ["/other"]}]`)))
	expect.Success(t, rejectedWith("cannot create pods/exec")(err))
}

// TestLargestMarker creates and updates a marker of the maximum size, so that the policy compares
// each probe with each. The policy stays within the API server's cost budget.
func TestLargestMarker(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	user := env.UserSubject("large")
	a := authors(t, user, server.User(t, user.Name))["Deny"]
	large := func(command string) *v1alpha1.PodProbeMarker {
		marker := markerIn(a.namespace)
		for i := range 32 {
			p := execProbe().Condition(fmt.Sprintf("game.io/c%d", i))
			for k := range 16 {
				for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed} {
					p.Label(state, fmt.Sprintf("game.io/%s-%d", strings.Repeat("k", 50), k), strings.Repeat("v", 63))
				}
			}
			made := p.Build()
			made.Name = fmt.Sprintf("%s%02d", strings.Repeat("n", 251), i)
			made.Probe.Exec.Command = []string{"/bin/sh", "-c", strings.Repeat(command, 10_000)}
			marker.Spec.Probes = append(marker.Spec.Probes, *made)
		}
		return marker
	}
	text := strings.Repeat("n", 251) + "00 and 31 more"
	eventually(t, "create", func(ctx context.Context) error {
		return rejectedWith(text)(a.Create(ctx, large("x")))
	})
	marker := large("x")
	expect.NoError(t, server.Client.Create(t.Context(), marker))
	edited := marker.DeepCopy()
	edited.Spec = large("y").Spec
	expect.Success(t, rejectedWith(text)(a.Update(t.Context(), edited)))
	marker.Labels = map[string]string{"a": "b"}
	if err := a.Update(t.Context(), marker); err != nil {
		t.Errorf("add a label: %v", err)
	}
}

// TestChangedSelector covers CRDs without Seamark's rules, which allow a selector to change.
func TestChangedSelector(t *testing.T) {
	t.Parallel()
	e := env.Start(t, env.UpstreamCRDs())
	install(t, e, "policies")
	namespace, user := e.Namespace(t), env.UserSubject("mover")
	e.Grant(t, namespace, user, writeMarkers)
	c, warned := clientOf(t, e, e.User(t, user.Name))
	marker := markerIn(namespace, execProbe())
	expect.NoError(t, e.Client.Create(t.Context(), marker))
	want := []string{noExec(user.Name, namespace, "busy"), noPatch(user.Name, namespace, "busy")}
	eventually(t, "warnings", func(ctx context.Context) error {
		edited := marker.DeepCopy()
		edited.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
		if err := c.Update(ctx, edited, client.DryRunAll); err != nil {
			return err
		}
		if diff := cmp.Diff(want, warned.take()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}
