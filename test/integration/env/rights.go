// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
)

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
