// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies_test tests the admission policies in config/policies with a real API server,
// tokens and users.
package policies_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
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
