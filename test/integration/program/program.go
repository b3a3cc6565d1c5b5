// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program runs seamark-workloads with the rights of its service account, and waits for objects that it writes.
package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/grants"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// Must ends the test if there is an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	expect.NoError(tb, err)
}

// Install gives the program the rights that the files grant it, within the policy of config/workloads. With those of
// config/imagepulls, the policy permits the pods of pulls.
func Install(t *testing.T, e *env.Env, files ...string) *rest.Config {
	t.Helper()
	e.ServiceAccount(t, env.SystemNamespace, workloads.Name, nil) // Creates the namespace.
	for _, path := range append(files, "config/workloads/policy.yaml") {
		manifests, err := env.ReadManifests(path)
		Must(t, err)
		if slices.Contains(files, "config/imagepulls/rbac.yaml") {
			permitPulls(t, manifests)
		}
		e.Apply(t, manifests...)
	}
	cfg := e.Component(t, workloads.Name)
	Grant(t, e)
	return cfg
}

// permitPulls lets the policy of pods permit the pods of pulls, as config/imagepulls does.
func permitPulls(t *testing.T, manifests []*unstructured.Unstructured) {
	t.Helper()
	for _, manifest := range manifests {
		if manifest.GetName() != "seamark-workloads-pods" || manifest.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		variables, _, err := unstructured.NestedSlice(manifest.Object, "spec", "variables")
		Must(t, err)
		for i := range variables {
			if variable := variables[i].(map[string]any); variable["name"] == "imagePulls" {
				variable["expression"] = "true"
			}
		}
		Must(t, unstructured.SetNestedSlice(manifest.Object, variables, "spec", "variables"))
	}
}

// Grant runs what the manager does for seamark-workloads until the test ends: it gives it its rights in the namespaces with
// sets. The files of Install must have been applied.
func Grant(tb testing.TB, e *env.Env) {
	tb.Helper()
	granter, err := grants.New(grants.Options{
		Config: e.Component(tb, manager), Namespace: env.SystemNamespace, Resources: configv1alpha1.GrantResources(), Log: logr.Discard(),
	})
	Must(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- granter.Start(ctx) }()
	tb.Cleanup(func() { cancel(); Must(tb, <-done) })
}

// manager is the service account of the manager.
const manager = "seamark-manager"

// Start runs the program with defaults that are changed, until the test ends or the function is called.
func Start(t *testing.T, cfg *rest.Config, change func(options *workloads.Options, enabled *configv1alpha1.WorkloadControllers)) (stop func()) {
	t.Helper()
	var c configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetWorkloadsDefaults(&c)
	options := workloads.Options{
		Config: cfg, MetricsBindAddress: "0", HealthProbeBindAddress: "0", Controllers: c.Controllers, ImagePull: c.ImagePull,
		OpenKruiseNamespace: c.OpenKruise.Namespace, Namespace: env.SystemNamespace, Registry: prometheus.NewRegistry(), Logger: logr.Discard(),
	}
	change(&options, &options.Controllers)
	running, err := workloads.New(options)
	Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- running.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error("run the program:", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Poll returns how tests wait for the program.
func Poll() await.Poll { return await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout} }

// Edit reads an object and writes what change makes of it.
func Edit(tb testing.TB, c client.Client, object client.Object, change func()) {
	tb.Helper()
	Must(tb, c.Get(tb.Context(), client.ObjectKeyFromObject(object), object))
	before, ok := object.DeepCopyObject().(client.Object)
	if change(); !ok {
		tb.Fatalf("%T is no object", object)
	}
	Must(tb, c.Patch(tb.Context(), object, client.MergeFrom(before)))
}

// Until waits until the check of an object, which it reads, succeeds.
func Until(tb testing.TB, c client.Client, object client.Object, what string, check func() error) {
	tb.Helper()
	Poll().Success(tb, what, func(ctx context.Context) error {
		return errors.Join(c.Get(ctx, client.ObjectKeyFromObject(object), object), check())
	})
}

// Has waits until an object has a condition.
func Has(tb testing.TB, c client.Client, object client.Object, conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	tb.Helper()
	var found metav1.Condition
	Until(tb, c, object, fmt.Sprintf("%s is %s", kind, status), func() error {
		condition := meta.FindStatusCondition(*conditions, kind)
		if condition == nil || condition.Status != status || condition.Reason != reason || condition.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("%+v", *conditions)
		}
		found = *condition
		return nil
	})
	return found
}
