// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies_test holds a real API server, with real tokens and users, to the
// admission policies of config/policies.
package policies_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// server is the API server that the tests of this package share.
var server *env.Env

func TestMain(m *testing.M) {
	env.Main(m, func(e *env.Env) { server = e })
}

// install creates the objects of a folder below config/, where they are not there yet.
func install(t *testing.T, e *env.Env, folder string) {
	t.Helper()
	objects, err := env.ReadManifests("config/" + folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		t.Fatalf("config/%s has no objects", folder)
	}
	e.Apply(t, objects...)
}

// warnings keeps the warnings that the API server sends with its answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext is the client's call for each warning.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// What comes before is which policy and binding speak.
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

// clientOf returns a client with the configuration, and what it is warned of.
func clientOf(t *testing.T, e *env.Env, config *rest.Config) (client.Client, *warnings) {
	t.Helper()
	warned := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = warned
	c, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, warned
}

// grant gives the user the rules in the namespace.
func grant(t *testing.T, e *env.Env, namespace string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"},
		Rules:      rules,
	}
	if err := e.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	if err := e.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns nil: the API server sees new roles, policies and
// bindings by watches, a moment after their creation.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	await.Poll{Interval: 50 * time.Millisecond, Timeout: await.Timeout}.Success(t, what, check)
}
