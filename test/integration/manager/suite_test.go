// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs the manager against a real API server, with the rights of its
// service account. Nodes and pods are plain objects without kubelets, and the tests write the
// agents' reports.
package manager_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// servers are the API servers of the package. Each test needs one for itself, because a manager acts
// on all namespaces.
var servers env.Pool

func TestMain(m *testing.M) { servers.Main(m) }

// world is the fixture of one test: a namespace and the nodes that the test creates.
type world struct {
	testing.TB
	env       *env.Env
	client    client.Client
	namespace string
	nodes     []string
	poll      await.Poll
}

// newWorld starts a manager for the test. The cleanup at the end relies on it.
func newWorld(t testing.TB, e *env.Env) *world {
	t.Helper()
	startManager(t, e)
	w := newWorldWithoutManager(t, e)
	t.Cleanup(w.clean)
	return w
}

// newWorldWithoutManager is for tests that start managers themselves. They must defer clean,
// which needs a running manager.
func newWorldWithoutManager(t testing.TB, e *env.Env) *world {
	t.Helper()
	return &world{TB: t, env: e, client: e.Client, namespace: e.Namespace(t), poll: await.Poll{Interval: 20 * time.Millisecond, Timeout: await.Timeout}}
}

// clean deletes everything that the manager of another test would act on.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	for _, object := range []client.Object{&corev1.Pod{}, &v1alpha1.PodProbeMarker{}} {
		if err := w.client.DeleteAllOf(ctx, object, client.InNamespace(w.namespace), client.GracePeriodSeconds(0)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
	for _, name := range w.nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(w.client.Delete(ctx, node)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var markers v1alpha1.PodProbeMarkerList
		var plans v1alpha1.NodePodProbeList
		var planSlices seamarkv1alpha1.ProbePlanList
		var slices seamarkv1alpha1.ProbeReportList
		if err := w.client.List(ctx, &markers, client.InNamespace(w.namespace)); err != nil {
			return false, err
		}
		err := errors.Join(w.client.List(ctx, &plans), w.client.List(ctx, &planSlices), w.client.List(ctx, &slices))
		return len(markers.Items)+len(plans.Items)+len(planSlices.Items)+len(slices.Items) == 0, err
	})
	if err != nil {
		w.Errorf("wait until the markers, plans and reports are deleted: %v", err)
	}
}

// startManager runs a manager until the test ends or the returned function is called.
func startManager(t testing.TB, e *env.Env) (stop func()) {
	t.Helper()
	return runManager(t, manager.Options{
		Config: e.Component(t, manager.Name), MetricsBindAddress: "0", HealthProbeBindAddress: "0",
	})
}

// runManager sets defaults for the other options and runs a manager.
func runManager(t testing.TB, options manager.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var defaults configv1alpha1.ManagerConfiguration
	configv1alpha1.SetManagerDefaults(&defaults)
	options.Controllers, options.Defaults = defaults.Controllers, plan.KubernetesDefaults()
	if options.Registry == nil {
		options.Registry = prometheus.NewRegistry()
	}
	if options.Logger.GetSink() == nil {
		options.Logger = logr.Discard()
	}
	m, err := manager.New(options)
	if err != nil {
		cancel()
		t.Fatal("create manager:", err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Error("run manager:", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// until waits until missing returns an empty string.
func (w *world) until(what string, missing func(ctx context.Context) (string, error)) {
	w.Helper()
	w.poll.Until(w, what, missing)
}

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	expect.NoError(w, err)
}

// node creates a node and waits for its NodePodProbe.
func (w *world) node(name string) string {
	w.Helper()
	w.must(w.client.Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	w.nodes = append(w.nodes, name)
	w.until("node "+name+" has a NodePodProbe", func(ctx context.Context) (string, error) {
		_, err := w.getPlan(ctx, name)
		if apierrors.IsNotFound(err) {
			return "it has none", nil
		}
		return "", err
	})
	return name
}

// getPlan returns the NodePodProbe of the node with the whole plan.
func (w *world) getPlan(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	return planOf(ctx, w.client, node)
}

func planOf(ctx context.Context, c client.Client, node string) (*v1alpha1.NodePodProbe, error) {
	npp, err := gather.Reader{Client: c}.NodePlan(ctx, node)
	if err == nil && npp == nil {
		npp, err = &v1alpha1.NodePodProbe{}, apierrors.NewNotFound(v1alpha1.GroupVersion().WithResource("nodepodprobes").GroupResource(), node)
	}
	return npp, err
}

// pod creates a running pod with the label app=game on the node.
func (w *world) pod(name, node string) *corev1.Pod {
	w.Helper()
	pod, err := env.CreatePod(w.Context(), w.client, builders.Pod(w.namespace, name).Label("app", "game").Node(node).Build())
	w.must(err)
	return pod
}

func (w *world) getPod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, pod)
	return pod, err
}

func (w *world) marker(builder *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	w.Helper()
	marker := builder.Unsaved().Build()
	w.must(w.client.Create(w.Context(), marker))
	return marker
}

func (w *world) getMarker(ctx context.Context, name string) (*v1alpha1.PodProbeMarker, error) {
	marker := &v1alpha1.PodProbeMarker{}
	err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, marker)
	return marker, err
}

// gone waits until the marker is deleted.
func (w *world) gone(marker string) {
	w.Helper()
	w.until("marker "+marker+" is gone", func(ctx context.Context) (string, error) {
		_, err := w.getMarker(ctx, marker)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it exists", err
	})
}
