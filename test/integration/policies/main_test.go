// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies_test tests the admission policies in config/policies with a real API server,
// tokens and users.
package policies_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) { env.Main(m, &server) }

// install creates the objects of a folder below config/ that do not exist yet. Authors of markers are warned, as
// while migrating, except in namespaces with denyLabel.
func install(t *testing.T, e *env.Env, folder string) {
	t.Helper()
	objects := env.Manifests(t, []string{"config/" + folder})
	if len(objects) == 0 {
		t.Fatalf("config/%s has no objects", folder)
	}
	for _, object := range objects {
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" && object.GetName() == authorPolicy {
			expect.NoError(t, unstructured.SetNestedStringSlice(object.Object, []string{"Warn", "Audit"}, "spec", "validationActions"))
		}
	}
	e.Apply(t, objects...)
}

// warnings keeps the warnings in the API server's responses.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Remove the names of the policy and the binding.
	if _, after, found := strings.Cut(text, "with binding '"); found {
		_, text, _ = strings.Cut(after, "': ")
	}
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func clientOf(t *testing.T, e *env.Env, config *rest.Config) (client.Client, *warnings) {
	t.Helper()
	warned := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warned
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	expect.NoError(t, err)
	return c, warned
}

// eventually waits until check returns nil: the API server watches roles, policies and
// bindings, so new ones take effect with a short delay.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	await.Poll{Interval: 50 * time.Millisecond, Timeout: await.Timeout}.Success(t, what, check)
}

// TestTrustedAuthors writes a marker with exec as OpenKruiseGame's controller does, with those of its rights that
// matter: it may create and patch pods, and has no pods/exec.
func TestTrustedAuthors(t *testing.T) {
	t.Parallel()
	const label, policy = "seamark.dev/test-trusted", "trusted-marker-author"
	installForAuthors(t)
	_, strict := namespaces(t)
	trusting := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{label: "true", denyLabel: "false"}}}
	expect.NoError(t, server.Client.Create(t.Context(), trusting))
	game := env.ServiceAccountSubject("kruise-game-system", "kruise-game-controller-manager")
	c, _ := clientOf(t, server, server.ServiceAccount(t, game.Namespace, game.Name, nil))
	other, _ := clientOf(t, server, server.ServiceAccount(t, game.Namespace, "other", nil))
	rights := []rbacv1.PolicyRule{
		{
			APIGroups: []string{"apps.kruise.io"}, Resources: []string{"podprobemarkers", "statefulsets"}, Verbs: []string{
				"create", "delete", "get", "list", "patch", "update", "watch",
			},
		},
		{APIGroups: []string{""}, Resources: []string{"pods", "services"}, Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
	}
	for _, namespace := range []string{strict, trusting.Name} {
		server.Grant(t, namespace, game, rights...)
		server.Grant(t, namespace, env.ServiceAccountSubject(game.Namespace, "other"), rights...)
	}
	manifests := env.Manifests(t, []string{"config/policies/marker-author.yaml"})
	for _, object := range manifests {
		object.SetName(policy)
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			conditions := []any{map[string]any{
				"name": "not-trusted", "expression": `!(request.userInfo.username in ["system:serviceaccount:` + game.Namespace + ":" + game.Name + `"])`,
			}}
			expect.NoError(t, unstructured.SetNestedSlice(object.Object, conditions, "spec", "matchConditions"))
		} else {
			object.Object["spec"] = map[string]any{
				"policyName": policy, "validationActions": []any{"Deny"},
				"matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{label: "true"}}},
			}
		}
	}
	server.Apply(t, manifests...)
	// The policy is in effect for the last account when it is for the one before.
	for _, test := range []struct {
		name      string
		as        client.Client
		namespace string
		want      string
	}{
		{"without the entry", c, strict, noExec("system:serviceaccount:"+game.Namespace+":"+game.Name, strict, "busy")},
		{"another account", other, trusting.Name, "cannot create pods/exec"},
		{"with the entry", c, trusting.Name, ""},
	} {
		eventually(t, test.name, func(ctx context.Context) error {
			return rejectedWith(test.want)(test.as.Create(ctx, markerIn(test.namespace, execProbe()), client.DryRunAll))
		})
	}
}

// proxy is a rule for requests to pods through the API server.
func proxy(verb string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{verb}}
}

// noProxy is the policy's message to a user who may not read the responses of pods.
func noProxy(user, namespace, probes string) string {
	return fmt.Sprintf(`user %q cannot get pods/proxy in namespace %q, which is required for probes with httpGet and the annotation `+
		`seamark.dev/publish-http-body: %s. Remove the annotation, or ask for a role that allows it, such as the ClusterRole edit`, user, namespace, probes)
}

// publishing sets the annotation, or removes it if the value is empty.
func publishing(m *v1alpha1.PodProbeMarker, value string) *v1alpha1.PodProbeMarker {
	m.Annotations = map[string]string{"other": "x"}
	if value != "" {
		m.Annotations[v1alpha1.PublishHTTPBodyAnnotationKey] = value
	}
	return m
}

// pageProbe returns a probe of another page than httpProbe.
func pageProbe() *builders.ProbeBuilder {
	return builders.Probe("page").Condition("game.io/page").Handler(corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/page", Port: intstr.FromInt32(80)},
	})
}

func TestAuthorWhoPublishesBodies(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	both := []*builders.ProbeBuilder{execProbe(), httpProbe()}
	for name, test := range map[string]struct {
		rules  []rbacv1.PolicyRule
		probes []*builders.ProbeBuilder
		value  string
		want   missingTexts
	}{
		"no right":         {nil, both, "true", missingTexts{missing(noProxy, "web")}},
		"two pages":        {nil, append(both, pageProbe()), "true", missingTexts{missing(noProxy, "web and 1 more")}},
		"may get":          {[]rbacv1.PolicyRule{proxy("get")}, both, "true", nil},
		"may only create":  {[]rbacv1.PolicyRule{proxy("create")}, both, "true", missingTexts{missing(noProxy, "web")}},
		"other value":      {nil, both, "yes", nil},
		"no annotation":    {nil, both, "", nil},
		"no HTTP response": {nil, []*builders.ProbeBuilder{execProbe()}, "true", nil},
	} {
		user := env.UserSubject("body-" + strings.ReplaceAll(name, " ", "-"))
		for mode, a := range authors(t, user, server.User(t, user.Name), append(test.rules, mayExec, mayPatch)...) {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				eventually(t, "response", func(ctx context.Context) error {
					return a.check(a.Create(ctx, publishing(markerIn(a.namespace, test.probes...), test.value)), test.want...)
				})
			})
		}
	}
}

// TestAuthorOfPublishedMarker changes markers of others as a user who may not read responses. What is
// published already does not block other changes.
func TestAuthorOfPublishedMarker(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	web := missingTexts{missing(noProxy, "web")}
	for name, test := range map[string]struct {
		before string
		edit   func(*v1alpha1.PodProbeMarker)
		want   missingTexts
	}{
		"set":              {"", func(m *v1alpha1.PodProbeMarker) { publishing(m, "true") }, web},
		"set after false":  {"false", func(m *v1alpha1.PodProbeMarker) { publishing(m, "true") }, web},
		"removed":          {"true", func(m *v1alpha1.PodProbeMarker) { publishing(m, "") }, nil},
		"other annotation": {"true", func(m *v1alpha1.PodProbeMarker) { m.Annotations["more"] = "x" }, nil},
		"finalizer":        {"true", func(m *v1alpha1.PodProbeMarker) { m.Finalizers = []string{v1alpha1.PodProbeMarkerFinalizer} }, nil},
		"command":          {"true", func(m *v1alpha1.PodProbeMarker) { probe(m, "busy").Probe.Exec.Command = []string{"/other"} }, nil},
		"removed probe":    {"true", func(m *v1alpha1.PodProbeMarker) { m.Spec.Probes = m.Spec.Probes[1:] }, nil},
		"path":             {"true", func(m *v1alpha1.PodProbeMarker) { probe(m, "web").Probe.HTTPGet.Path = "/secret" }, web},
		"path, not published": {"false", func(m *v1alpha1.PodProbeMarker) {
			probe(m, "web").Probe.HTTPGet.Path = "/secret"
		}, nil},
		"added page": {"true", func(m *v1alpha1.PodProbeMarker) {
			m.Spec.Probes = append(m.Spec.Probes, *pageProbe().Build())
		}, missingTexts{missing(noProxy, "page")}},
		"set with another page": {"", func(m *v1alpha1.PodProbeMarker) {
			publishing(m, "true").Spec.Probes = append(m.Spec.Probes, *pageProbe().Build())
		}, missingTexts{missing(noProxy, "web and 1 more")}},
	} {
		user := env.UserSubject("published-" + strings.ReplaceAll(name, " ", "-"))
		for mode, a := range authors(t, user, server.User(t, user.Name), mayExec, mayPatch) {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				a.checkEdit(t, publishing(markerIn(a.namespace, execProbe(), httpProbe()), test.before), test.edit, test.want)
			})
		}
	}
}

// TestStatusDoesNotPublishBodies checks that the right to write the status is not enough to set the
// annotation: the policy does not see such requests.
func TestStatusDoesNotPublishBodies(t *testing.T) {
	t.Parallel()
	marker := markerIn(server.Namespace(t), httpProbe())
	expect.NoError(t, server.Client.Create(t.Context(), marker))
	patch := env.MergePatch(`{"metadata": {"annotations": {"` + v1alpha1.PublishHTTPBodyAnnotationKey + `": "true"}}, "status": {"matchedPods": 3}}`)
	expect.NoError(t, server.Client.Status().Patch(t.Context(), marker, patch))
	if marker.Status.MatchedPods != 3 || len(marker.Annotations) > 0 {
		t.Errorf("%d matched pods and annotations %v, want 3 and none", marker.Status.MatchedPods, marker.Annotations)
	}
}

// TestEditorsMayPublishBodies checks what the policy's message describes: the role of Kubernetes is sufficient.
func TestEditorsMayPublishBodies(t *testing.T) {
	t.Parallel()
	installForAuthors(t)
	_, strict := namespaces(t)
	user := env.UserSubject("editor")
	server.Grant(t, strict, user, writeMarkers)
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: strict, Name: "editor"},
		// The API server creates this part of edit, which no controller aggregates here.
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-edit"},
		Subjects: []rbacv1.Subject{user},
	}
	expect.NoError(t, server.Client.Create(t.Context(), binding))
	c, warned := clientOf(t, server, server.User(t, user.Name))
	eventually(t, "creation", func(ctx context.Context) error {
		return c.Create(ctx, publishing(markerIn(strict, execProbe(), httpProbe()), "true"), client.DryRunAll)
	})
	if texts := warned.take(); len(texts) > 0 {
		t.Errorf("warnings: %q", texts)
	}
}
