// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
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
