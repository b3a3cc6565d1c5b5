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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager"
	"github.com/seamark-dev/seamark/internal/marking/podview/gather"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// servers are the API servers of the package. Each test needs one for itself, because a manager acts
// on all namespaces.
var servers env.Pool

func TestMain(m *testing.M) { servers.Main(m) }

// world is the fixture of one test: a namespace and the nodes that the test creates.
type world struct {
	*env.World
	nodes []string
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
	return &world{World: env.NewWorld(t, e)}
}

// clean deletes everything that the manager of another test would act on.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	w.Clean(&corev1.Pod{}, &v1alpha1.PodProbeMarker{})
	for _, name := range w.nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(w.Client.Delete(ctx, node)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var markers v1alpha1.PodProbeMarkerList
		var plans v1alpha1.NodePodProbeList
		var planSlices seamarkv1alpha1.ProbePlanList
		var slices seamarkv1alpha1.ProbeReportList
		if err := w.Client.List(ctx, &markers, client.InNamespace(w.Namespace)); err != nil {
			return false, err
		}
		err := errors.Join(w.Client.List(ctx, &plans), w.Client.List(ctx, &planSlices), w.Client.List(ctx, &slices))
		return len(markers.Items)+len(plans.Items)+len(planSlices.Items)+len(slices.Items) == 0, err
	})
	if err != nil {
		w.Errorf("wait until the markers, plans and reports are deleted: %v", err)
	}
}

// startManager runs a manager until the test ends or the returned function is called.
func startManager(t testing.TB, e *env.Env) (stop func()) {
	t.Helper()
	return program.StartManager(t, manager.Options{Config: e.Component(t, manager.Name)})
}

// node creates a node and waits for its NodePodProbe.
func (w *world) node(name string) string {
	w.Helper()
	w.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.nodes = append(w.nodes, name)
	w.Until("node "+name+" has a NodePodProbe", func() error {
		_, err := w.getPlan(w.Context(), name)
		return err
	})
	return name
}

// getPlan returns the NodePodProbe of the node with the whole plan.
func (w *world) getPlan(ctx context.Context, node string) (*v1alpha1.NodePodProbe, error) {
	return planOf(ctx, w.Client, node)
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
	pod, err := env.CreatePod(w.Context(), w.Client, builders.Pod(w.Namespace, name).Label("app", "game").Node(node).Build())
	w.Must(err)
	return pod
}

// stored returns a pod.
func (w *world) stored(name string) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: w.Meta(name)}
	w.Get(pod)
	return pod
}

// storedPlan returns the NodePodProbe of the node with the whole plan.
func (w *world) storedPlan(node string) *v1alpha1.NodePodProbe {
	w.Helper()
	npp, err := w.getPlan(w.Context(), node)
	w.Must(err)
	return npp
}

func (w *world) marker(builder *builders.MarkerBuilder) *v1alpha1.PodProbeMarker {
	w.Helper()
	marker := builder.Unsaved().Build()
	w.Create(marker)
	return marker
}

// gone waits until the marker is deleted.
func (w *world) gone(marker string) {
	w.Helper()
	w.Gone(w.markerNamed(marker))
}

// markerNamed returns a marker to delete or patch, by its name.
func (w *world) markerNamed(marker string) *v1alpha1.PodProbeMarker {
	return &v1alpha1.PodProbeMarker{ObjectMeta: w.Meta(marker)}
}
