// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui_test reads the web page that the manager serves, as users with different permissions
// at a real API server. The tests write the reports of the agents.
package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// shared is the API server of the package.
var shared *env.Env

func TestMain(m *testing.M) { env.Main(m, &shared) }

// world is a manager that serves the page, with two namespaces that have one pod each.
type world struct {
	testing.TB
	base string
	// first and second are the namespaces.
	first, second string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{TB: t, first: shared.Namespace(t), second: shared.Namespace(t)}
	for _, namespace := range []string{w.first, w.second} {
		w.fill(namespace)
	}
	w.addRefusedSet()
	config := shared.Component(t, manager.Name)
	roles, err := env.ReadManifests("config/ui/rbac.yaml")
	w.must(err)
	shared.Apply(t, roles...)
	address := env.FreeAddress(t)
	var defaults configv1alpha1.ManagerConfiguration
	configv1alpha1.SetManagerDefaults(&defaults)
	m, err := manager.New(manager.Options{
		Config: config, MetricsBindAddress: "0", HealthProbeBindAddress: "0", UIBindAddress: address,
		Controllers: defaults.Controllers, Defaults: plan.KubernetesDefaults(), Registry: prometheus.NewRegistry(), Logger: logr.Discard(),
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("run manager:", err)
		}
	})
	w.base = "http://" + address
	await.Until(t, "the manager serves the page", func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base, http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // it does not listen yet
		}
		return "", response.Body.Close()
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// addRefusedSet creates a SidecarSet that is not accepted.
func (w *world) addRefusedSet() {
	w.Helper()
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Spec: v1alpha1.SidecarSetSpec{
		Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
		Containers: []v1alpha1.SidecarContainer{{Container: corev1.Container{Name: "logs", Image: "logs:1"}}},
	}}
	w.must(shared.Client.Create(w.Context(), set))
	set.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.SidecarSetAccepted, Status: metav1.ConditionFalse, Reason: "NameConflict", Message: "taken", LastTransitionTime: metav1.Now(),
	}}
	w.must(shared.Client.Status().Update(w.Context(), set))
}

// fill creates a marker, a pod on a node, the report of its agent, and an event of the probe.
func (w *world) fill(namespace string) {
	w.Helper()
	ctx, node := w.Context(), "node-"+namespace
	w.must(shared.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}))
	w.must(shared.Client.Create(ctx, builders.Marker(namespace, "game").Unsaved().
		Probe(builders.Probe("idle").Condition("game.io/idle").Label(v1alpha1.ProbeSucceeded, "role", "idle")).Build()))
	pod, err := env.CreatePod(ctx, shared.Client, builders.Pod(namespace, "game-0").Label("app", "game").Node(node).
		Owner(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "game", UID: "1", Controller: new(true)}).Build())
	w.must(err)
	now := metav1.Now().Rfc3339Copy()
	w.must(shared.Client.Create(ctx, &seamarkv1alpha1.ProbeReport{
		ObjectMeta: metav1.ObjectMeta{Name: node + ".0"}, NodeName: node, Pods: []seamarkv1alpha1.PodReport{{
			Namespace: namespace, Name: "game-0", UID: string(pod.UID), Probes: []v1alpha1.ContainerProbeState{{
				Name: "game#idle", State: v1alpha1.ProbeSucceeded, LastProbeTime: now, LastTransitionTime: now, Message: "no players",
			}},
		}},
	}))
	w.must(shared.Client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "failed"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "game-0", UID: pod.UID},
		Source:         corev1.EventSource{Component: v1alpha1.EventSourceComponent},
		Reason:         v1alpha1.EventReasonProbeFailed, Message: "game#idle: in a match", Count: 1,
		FirstTimestamp: metav1.NewTime(now.Add(-60e9)), LastTimestamp: metav1.NewTime(now.Add(-60e9)),
	}))
}

// reading returns the rule to list and watch resources.
func reading(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"list", "watch"}}
}

// developer returns a user who may read pods and markers of the namespace, and what the rules add.
func (w *world) developer(t *testing.T, name, namespace string, more ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	config := shared.ServiceAccount(t, namespace, name, nil)
	shared.Grant(t, namespace, env.ServiceAccountSubject(namespace, name),
		append(more, reading("", "pods"), reading(v1alpha1.GroupName, "podprobemarkers"))...)
	return config
}

// administrator returns a user who may read everything.
func (w *world) administrator(t *testing.T) *rest.Config {
	t.Helper()
	const name = "admin"
	config := shared.ServiceAccount(t, w.first, name, nil)
	shared.GrantAll(t, w.first, name)
	return config
}

// browser returns a client that sends the token of the user.
func browser(t *testing.T, token string) *http.Client {
	t.Helper()
	transport, err := rest.HTTPWrappersForConfig(&rest.Config{BearerToken: token}, &http.Transport{})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

func (w *world) get(t *testing.T, c *http.Client, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+path, http.NoBody)
	w.must(err)
	response, err := c.Do(request)
	w.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	w.must(err)
	var refusal model.Error
	if json.Unmarshal(body, &refusal) == nil && refusal.Error != "" {
		return response.StatusCode, refusal.Error
	}
	return response.StatusCode, string(body)
}

// read returns the JSON of a path.
func read[T any](t *testing.T, w *world, c *http.Client, path string) T {
	t.Helper()
	status, body := w.get(t, c, path)
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d, error %v: %s", path, status, err, body)
	}
	return value
}

func account(namespace, name string) string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name)
}
