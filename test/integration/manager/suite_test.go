// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs the manager against a real API server, with the rights of
// its own service account. Nodes and pods are objects without kubelets, and the test
// reports in the agents' place.
package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// shared is the API server of the package.
var shared *env.Env

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	env.Main(m, func(e *env.Env) { shared = e })
}

// patience is how long a test waits for what must come about, unless it says otherwise.
const patience = 30 * time.Second

// world is one test's part of the cluster: a namespace, and the nodes it makes.
type world struct {
	testing.TB
	env       *env.Env
	client    client.Client
	namespace string
	nodes     []string
	// pace is the time between two looks at what is waited for, patience the time after
	// which it is given up.
	pace, patience time.Duration
}

// newWorld starts a manager for the test, and cleans up through it at the end.
func newWorld(t testing.TB, e *env.Env) *world {
	t.Helper()
	startManager(t, e)
	w := newWorldWithoutManager(t, e)
	t.Cleanup(w.clean)
	return w
}

// newWorldWithoutManager is for tests that start managers themselves. They defer clean,
// which needs the last of them.
func newWorldWithoutManager(t testing.TB, e *env.Env) *world {
	t.Helper()
	return &world{TB: t, env: e, client: e.Client, namespace: e.Namespace(t), pace: 20 * time.Millisecond, patience: patience}
}

// clean leaves nothing that a manager of another test would act on.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, object := range []client.Object{&corev1.Pod{}, &v1alpha1.PodProbeMarker{}} {
		if err := w.client.DeleteAllOf(ctx, object, client.InNamespace(w.namespace), client.GracePeriodSeconds(0)); err != nil {
			w.Errorf("cleaning up: %v", err)
		}
	}
	for _, name := range w.nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(w.client.Delete(ctx, node)); err != nil {
			w.Errorf("cleaning up: %v", err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var markers v1alpha1.PodProbeMarkerList
		var plans v1alpha1.NodePodProbeList
		if err := w.client.List(ctx, &markers, client.InNamespace(w.namespace)); err != nil {
			return false, err
		}
		err := w.client.List(ctx, &plans)
		return len(markers.Items) == 0 && len(plans.Items) == 0, err
	})
	if err != nil {
		w.Errorf("markers or NodePodProbes of the test stay: %v", err)
	}
}

// startManager runs a manager until the test ends or the returned function is called.
func startManager(t testing.TB, e *env.Env) (stop func()) {
	t.Helper()
	return runManager(t, manager.Options{
		Config: identity(t, e), MetricsBindAddress: "0", HealthProbeBindAddress: "0",
	})
}

// runManager fills in the rest of the options.
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
	m, err := manager.New(ctx, options)
	if err != nil {
		cancel()
		t.Fatal("making the manager:", err)
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
			t.Error("the manager ended:", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// identity gives the manager the rights that config/rbac gives it, and no others.
func identity(t testing.TB, e *env.Env) *rest.Config {
	t.Helper()
	const namespace = "seamark-system"
	config := e.ServiceAccount(t, namespace, manager.Name, nil)
	manifests, err := env.ReadManifests("config/rbac")
	if err != nil {
		t.Fatal(err)
	}
	e.Apply(t, manifests...)
	return config
}

// until waits for what must come about. The condition says what is still missing.
func (w *world) until(what string, missing func(ctx context.Context) (string, error)) {
	w.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.Context(), w.pace, w.patience, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = missing(ctx)
		return last == "", err
	})
	if err != nil {
		w.Fatalf("waiting until %s: %v; still: %s", what, err, last)
	}
}

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// node makes a node and waits for its NodePodProbe.
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

func (w *world) getPlan(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	npp := &v1alpha1.NodePodProbe{}
	err := w.client.Get(ctx, types.NamespacedName{Name: node}, npp)
	return npp, err
}

// pod makes a running pod with the label app=game on the node.
func (w *world) pod(name, node string) *corev1.Pod {
	w.Helper()
	pod, err := createPod(w.Context(), w.client, builders.Pod(w.namespace, name).Label("app", "game").Node(node).Build())
	w.must(err)
	return pod
}

func createPod(ctx context.Context, c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
	status := pod.Status
	pod.UID, pod.ResourceVersion = "", ""
	if err := c.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("creating pod %s: %w", pod.Name, err)
	}
	// A manager may write the pod in between, so the whole status is a patch.
	made := pod.DeepCopy()
	pod.Status = status
	if err := c.Status().Patch(ctx, pod, client.StrategicMergeFrom(made)); err != nil {
		return nil, fmt.Errorf("starting pod %s: %w", pod.Name, err)
	}
	return pod, nil
}

func (w *world) getPod(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, pod)
	return pod, err
}

// marker makes a marker.
func (w *world) marker(builder *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	w.Helper()
	marker := builder.Build()
	marker.UID, marker.Generation = "", 0
	w.must(w.client.Create(w.Context(), marker))
	return marker
}

func (w *world) getMarker(ctx context.Context, name string) (*v1alpha1.PodProbeMarker, error) {
	marker := &v1alpha1.PodProbeMarker{}
	err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, marker)
	return marker, err
}

// gone waits until the marker is gone.
func (w *world) gone(marker string) {
	w.Helper()
	w.until("marker "+marker+" is gone", func(ctx context.Context) (string, error) {
		_, err := w.getMarker(ctx, marker)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "it is there", err
	})
}
