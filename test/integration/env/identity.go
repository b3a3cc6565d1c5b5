// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

// Namespace creates a namespace with a unique name and returns the name. The namespace stays
// when the test ends: no controller in this environment would complete its deletion.
func (e *Env) Namespace(tb testing.TB) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	expect.NoErrorf(tb, e.Client.Create(tb.Context(), namespace), "create namespace")
	return namespace.Name
}

// SystemNamespace is the namespace that config/ installs Seamark in.
const SystemNamespace = configv1alpha1.DefaultNamespace

// WorkloadsRights returns the files with the rights of seamark-workloads, those by which the manager gives it some, and the
// policies that limit both.
func WorkloadsRights() []string {
	return []string{"config/workloads/rbac.yaml", "config/workloads/grants.yaml", "config/workloads/policy.yaml"}
}

// KindRoles returns the files with the roles of seamark-workloads, those of the table of kinds.
func KindRoles() (files []string) {
	for _, kind := range kinds.Table() {
		if file := "config/" + kind.ConfigFolder + "/rbac.yaml"; !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// Component returns a configuration with a token of the service account of one of Seamark's
// programs, which has the rights that config/rbac and config/workloads grant it, within the policies of
// config/workloads and for the plans of the manager.
func (e *Env) Component(tb testing.TB, account string) *rest.Config {
	tb.Helper()
	// The token comes first: it creates the namespace.
	config := e.ServiceAccount(tb, SystemNamespace, account, nil)
	for _, path := range append([]string{"config/rbac", "config/policies/manager.yaml"}, WorkloadsRights()...) {
		manifests, err := ReadManifests(path)
		expect.NoError(tb, err)
		e.Apply(tb, manifests...)
	}
	return config
}

// ComponentWithoutBudgets is Component with the role of a version that does not read PodDisruptionBudgets, until the test ends.
func (e *Env) ComponentWithoutBudgets(tb testing.TB, account string) *rest.Config {
	tb.Helper()
	config := e.Component(tb, account)
	lists := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}}
	e.AwaitRight(tb, "", ServiceAccountSubject(SystemNamespace, account), lists)
	role := &rbacv1.ClusterRole{}
	expect.NoError(tb, e.Client.Get(tb.Context(), client.ObjectKey{Name: account}, role))
	whole := role.DeepCopy()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "policy") })
	expect.NoError(tb, e.Client.Update(tb.Context(), role))
	tb.Cleanup(func() {
		whole.ResourceVersion = ""
		expect.NoError(tb, e.Client.Update(context.Background(), whole)) // Another test gets the server.
	})
	denied, err := client.New(config, client.Options{Scheme: e.Scheme})
	expect.NoError(tb, err)
	await.Until(tb, "the right is gone", func(ctx context.Context) (string, error) {
		if err := denied.List(ctx, &policyv1.PodDisruptionBudgetList{}); !apierrors.IsForbidden(err) {
			return fmt.Sprint(err), nil
		}
		return "", nil
	})
	return config
}

// User returns a configuration that authenticates with a client certificate as the user, a
// member of the groups. RBAC applies to it.
func (e *Env) User(tb testing.TB, name string, groups ...string) *rest.Config {
	tb.Helper()
	user, err := e.environment.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	expect.NoErrorf(tb, err, "issue a client certificate for %s", name)
	return unlimited(user.Config())
}

// ApplyUserRoles applies the roles of Seamark for users.
func (e *Env) ApplyUserRoles(tb testing.TB) {
	tb.Helper()
	roles, err := ReadManifests("config/rbac/users.yaml")
	expect.NoError(tb, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace}}
	expect.NoError(tb, client.IgnoreAlreadyExists(e.Client.Create(tb.Context(), namespace)))
	e.Apply(tb, roles...)
}

// GrantStates applies the roles of Seamark for users, and binds the user to those that let it view the
// states of all namespaces.
func (e *Env) GrantStates(tb testing.TB, user string) {
	tb.Helper()
	e.ApplyUserRoles(tb)
	const role = "seamark-view-states"
	subject := UserSubject(user)
	name := role + "-" + user
	for _, object := range []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		},
	} {
		expect.NoError(tb, client.IgnoreAlreadyExists(e.Client.Create(tb.Context(), object)))
	}
	e.AwaitRight(tb, "", subject, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}})
	e.AwaitRight(tb, SystemNamespace, subject, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
}

// ServiceAccount returns a configuration that authenticates with a token of the service
// account, issued by the API server for one hour. The account and its namespace are created
// if they do not exist. If bound is not nil, the token is bound to that object, such as the
// Pod that uses it.
func (e *Env) ServiceAccount(tb testing.TB, namespace, name string, bound *authenticationv1.BoundObjectReference) *rest.Config {
	tb.Helper()
	config, err := e.Token(tb.Context(), namespace, name, bound)
	expect.NoErrorf(tb, err, "get a token for service account %s/%s", namespace, name)
	return config
}

// Token is ServiceAccount for programs that are not tests.
func (e *Env) Token(ctx context.Context, namespace, name string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, account,
	} {
		if err := client.IgnoreAlreadyExists(e.Client.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("create %T: %w", object, err)
		}
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound},
	}
	if err := e.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token: %w", err)
	}
	config := rest.AnonymousClientConfig(e.Config)
	config.BearerToken = request.Status.Token
	return unlimited(config), nil
}

// UserSubject returns the subject of a user in a binding.
func UserSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// ServiceAccountSubject returns the subject of a service account in a binding.
func ServiceAccountSubject(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// Grant binds a user or a service account to a new role of the rules in the namespace. It waits until the API
// server, which watches roles and bindings, allows the first rule.
func (e *Env) Grant(tb testing.TB, namespace string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	tb.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"}, Rules: rules}
	e.create(tb, role)
	e.create(tb, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	})
	e.AwaitRight(tb, namespace, subject, rules[0])
}

// GrantAll lets a service account do everything in the cluster, and waits until the API server allows that.
func (e *Env) GrantAll(tb testing.TB, namespace, account string) {
	tb.Helper()
	subject := ServiceAccountSubject(namespace, account)
	e.create(tb, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + namespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{subject},
	})
	e.AwaitRight(tb, "", subject, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}})
}

// WorkloadsBinding returns a RoleBinding as the manager creates them: it lets seamark-workloads write in the namespace.
func WorkloadsBinding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: grants.Role, Labels: map[string]string{grants.Label: grants.LabelValue}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: grants.Role},
		Subjects:   []rbacv1.Subject{ServiceAccountSubject(SystemNamespace, grants.Account)},
	}
}

// GrantWorkloads creates the RoleBinding of a namespace, and waits until it has effect.
func (e *Env) GrantWorkloads(tb testing.TB, namespace string) {
	tb.Helper()
	binding := WorkloadsBinding(namespace)
	expect.NoError(tb, client.IgnoreAlreadyExists(e.Client.Create(tb.Context(), binding)))
	e.AwaitRight(tb, namespace, binding.Subjects[0], rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}})
}

func (e *Env) create(tb testing.TB, object client.Object) {
	tb.Helper()
	expect.NoErrorf(tb, e.Client.Create(tb.Context(), object), "create %T", object)
}

// AwaitRight waits until the API server allows the subject what the rule lists first.
func (e *Env) AwaitRight(tb testing.TB, namespace string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
	tb.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		attributes.Name = rule.ResourceNames[0]
	}
	user := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	await.Until(tb, "rights of "+user, func(ctx context.Context) (string, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: attributes}}
		if err := e.Client.Create(ctx, review); err != nil || review.Status.Allowed {
			return "", err
		}
		return "not allowed: " + review.Status.Reason, nil
	})
}
