// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package injector_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/certificates"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/entries"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	runner "github.com/seamark-dev/seamark/test/integration/program"
)

// installation is an API server with the objects of config/sidecarsets, and seamark-workloads and an injector
// with the rights of their service accounts.
type installation struct {
	testing.TB
	*env.Env
	address string
	// end ends the injector.
	end func()
}

// install runs the programs until the test ends.
func install(t *testing.T, e *env.Env, lifetimes certificates.Lifetimes) *installation {
	t.Helper()
	i := &installation{TB: t, Env: e, address: env.FreeAddress(t)}
	host, text, err := net.SplitHostPort(i.address)
	must(t, err)
	applyWith(t, e, "config/workloads/policy.yaml", "sidecarSets", "true")
	applyWith(t, e, "config/policies/webhooks.yaml", "injectorURL", "'https://localhost:"+text+"'")
	cfg := e.Component(t, workloads.Name)
	runner.Grant(t, e)
	own := e.ServiceAccount(t, env.SystemNamespace, certificates.Name, nil)
	for _, path := range []string{"config/sidecarsets/rbac.yaml", "config/sidecarsets/injector-rbac.yaml", "config/sidecarsets/webhooks.yaml", "config/sidecarsets/injector.yaml"} {
		manifests, err := env.ReadManifests(path)
		must(t, err)
		e.Apply(t, without(manifests, "Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service")...)
	}
	port, err := strconv.Atoi(text)
	must(t, err)
	serving, err := injector.NewProgram(injector.Options{
		Config: own, Namespace: env.SystemNamespace, Host: host, Port: port, URL: "https://localhost", Lifetimes: lifetimes,
		MetricsBindAddress: "0", HealthProbeBindAddress: "0", Registry: prometheus.NewRegistry(), Logger: logger(),
	})
	must(t, err)
	var c configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetWorkloadsDefaults(&c)
	c.Controllers.SidecarSet.Enabled = new(true)
	program, err := workloads.New(workloads.Options{
		Config: cfg, MetricsBindAddress: "0", HealthProbeBindAddress: "0", Controllers: c.Controllers, OpenKruiseNamespace: c.OpenKruise.Namespace,
		Namespace: env.SystemNamespace, InjectorURL: "https://localhost:" + text,
		Registry: prometheus.NewRegistry(), Logger: logger(),
	})
	must(t, err)
	i.end = i.run(serving.Run)
	i.run(program.Run)
	return i
}

// applyWith creates a policy with another expression of a variable, as installations change it.
func applyWith(t *testing.T, e *env.Env, path, name, expression string) {
	t.Helper()
	manifests, err := env.ReadManifests(path)
	must(t, err)
	for _, object := range manifests {
		variables, found, _ := unstructured.NestedSlice(object.Object, "spec", "variables")
		for _, each := range variables {
			if variable, ok := each.(map[string]any); ok && variable["name"] == name {
				variable["expression"] = expression
			}
		}
		if found {
			must(t, unstructured.SetNestedSlice(object.Object, variables, "spec", "variables"))
		}
	}
	e.Apply(t, manifests...)
}

// without returns the objects of other kinds.
func without(all []*unstructured.Unstructured, kinds ...string) []*unstructured.Unstructured {
	var kept []*unstructured.Unstructured
	for _, object := range all {
		found := false
		for _, kind := range kinds {
			found = found || object.GetKind() == kind
		}
		if !found {
			kept = append(kept, object)
		}
	}
	return kept
}

// logger logs to stderr if the environment variable SEAMARK_TEST_LOG is set.
func logger() logr.Logger {
	if os.Getenv("SEAMARK_TEST_LOG") == "" {
		return logr.Discard()
	}
	return logging.New(os.Stderr, configv1alpha1.Logging{Verbosity: 2})
}

// run runs a program until the test ends or the function is called.
func (i *installation) run(program func(context.Context) error) func() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program(ctx) }()
	ended := false
	end := func() {
		if !ended {
			ended = true
			cancel()
			if err := <-done; err != nil {
				i.Error("run the program:", err)
			}
		}
	}
	i.Cleanup(end)
	return end
}

// apply creates the set, or replaces its specification, and deletes it at the end of the test.
func (i *installation) apply(t *testing.T, set *v1alpha1.SidecarSet) *v1alpha1.SidecarSet {
	t.Helper()
	err := i.Client.Create(t.Context(), set)
	if err == nil {
		t.Cleanup(func() { _ = i.Client.Delete(context.Background(), set) })
	}
	must(t, err)
	return set
}

// edit changes the set.
func (i *installation) edit(t *testing.T, set *v1alpha1.SidecarSet, change func(*v1alpha1.SidecarSet)) {
	t.Helper()
	must(t, i.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	before := set.DeepCopy()
	change(set)
	must(t, i.Client.Patch(t.Context(), set, client.MergeFrom(before)))
}

// await waits until the condition of the current generation has the status and the reason.
func (i *installation) await(t *testing.T, set *v1alpha1.SidecarSet, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	await.Poll{Interval: 10 * time.Millisecond, Timeout: await.Timeout}.Success(t, fmt.Sprintf("%s of %s is %s", kind, set.Name, status), func(ctx context.Context) error {
		if err := i.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(set.Status.Conditions, kind)
		if condition == nil {
			return errors.New("no condition")
		}
		found = *condition
		if found.Status != status || found.Reason != reason || found.ObservedGeneration != set.Generation {
			return fmt.Errorf("%+v of generation %d", found, set.Generation)
		}
		return nil
	})
	return found
}

// injects waits until the current generation is accepted and its entry is written, and a little longer: API
// servers learn of it by a watch.
func (i *installation) injects(t *testing.T, set *v1alpha1.SidecarSet) {
	t.Helper()
	i.await(t, set, v1alpha1.SidecarSetAccepted, metav1.ConditionTrue, "Accepted")
	i.await(t, set, v1alpha1.SidecarSetInjecting, metav1.ConditionTrue, "Entered")
}

// eventually creates pods until one satisfies the check.
func (i *installation) eventually(t *testing.T, what string, p *corev1.Pod, check func(*corev1.Pod, error) error) {
	t.Helper()
	await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout}.Success(t, what, func(ctx context.Context) error {
		created := p.DeepCopy()
		created.Name, created.GenerateName = "", p.Name+"-"
		return check(created, i.Client.Create(ctx, created, client.DryRunAll))
	})
}

// has returns a check for the containers of a pod.
func has(want string) func(*corev1.Pod, error) error {
	return func(p *corev1.Pod, err error) error {
		if got := names(p); err != nil || got != want {
			return fmt.Errorf("containers %s, error %w, want %s", got, err, want)
		}
		return nil
	}
}

// stored returns the entry of the set, or nil.
func (i *installation) stored(t *testing.T, name string) *admissionregistrationv1.MutatingWebhook {
	t.Helper()
	for n := range entries.Configurations {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		must(t, i.Client.Get(t.Context(), client.ObjectKey{Name: entries.ConfigurationName(n)}, configuration))
		for j := range configuration.Webhooks {
			if configuration.Webhooks[j].Name == name+".sidecarsets.seamark.dev" {
				return &configuration.Webhooks[j]
			}
		}
	}
	return nil
}
