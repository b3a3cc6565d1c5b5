// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads_test runs seamark-workloads against a real API server, with the rights of its
// service account. The nodes are simulated.
package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
	"github.com/seamark-dev/seamark/test/kubelet"
)

// servers are the API servers of the package. Each test needs one for itself, because the program acts
// on all namespaces.
var servers env.Pool

func TestMain(m *testing.M) { servers.Main(m) }

// world is the fixture of one test: a namespace with simulated nodes.
type world struct {
	*env.World
	registry *prometheus.Registry
}

// newWorld starts the program and the nodes for the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldWithoutProgram(t, servers.Parallel(t))
	w.start()
	return w
}

// newWorldWithoutProgram starts only the nodes.
func newWorldWithoutProgram(t testing.TB, e *env.Env) *world {
	t.Helper()
	return newScene(t, e, func(err error) { t.Error(err) })
}

// newScene returns a world with nodes, and without the program. failed gets the errors of the nodes.
func newScene(t testing.TB, e *env.Env, failed func(error)) *world {
	t.Helper()
	w := &world{World: env.NewWorld(t, e)}
	t.Cleanup(w.clean)
	program.Grant(t, e)
	env.RunKubelets(t, kubelet.Options{Config: e.Config, Namespace: w.Namespace, Failed: failed})
	return w
}

func parallel(set *v1beta1.StatefulSet) { set.Spec.PodManagementPolicy = "Parallel" }

// clean deletes the sets and their pods.
func (w *world) clean() { w.Clean(&v1alpha1.CloneSet{}, &v1beta1.StatefulSet{}, &corev1.Pod{}) }

// start runs the program until the test ends or the returned function is called.
func (w *world) start() (stop func()) {
	w.Helper()
	w.registry = prometheus.NewRegistry()
	return program.Start(w, w.Component(w, workloads.Name), func(o *workloads.Options, _ *configv1alpha1.WorkloadControllers) { o.Registry = w.registry })
}

func template(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

func (w *world) cloneSet(name string, replicas int32, change ...func(*v1alpha1.CloneSet)) *v1alpha1.CloneSet {
	w.Helper()
	set := &v1alpha1.CloneSet{
		ObjectMeta: w.Meta(name),
		Spec: v1alpha1.CloneSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, "image:1"),
		},
	}
	for _, each := range change {
		each(set)
	}
	w.Create(set)
	return set
}

func (w *world) statefulSet(name string, replicas int32, change ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	w.Helper()
	set := &v1beta1.StatefulSet{
		ObjectMeta: w.Meta(name),
		Spec: v1beta1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, "image:1"), ServiceName: name,
		},
	}
	for _, each := range change {
		each(set)
	}
	w.Create(set)
	return set
}

// pods returns the pods of a set by name.
func (w *world) pods(ctx context.Context, app string) (map[string]*corev1.Pod, error) {
	return w.labeled(ctx, "app", app)
}

func (w *world) labeled(ctx context.Context, key, value string) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	err := w.Client.List(ctx, &list, client.InNamespace(w.Namespace), client.MatchingLabels{key: value})
	pods := make(map[string]*corev1.Pod)
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, err
}

// stored is pods for a test.
func (w *world) stored(app string) map[string]*corev1.Pod {
	w.Helper()
	pods, err := w.pods(w.Context(), app)
	w.Must(err)
	return pods
}

// settled waits until the set has exactly so many ready pods with the image, and its status says so.
func (w *world) settled(set client.Object, replicas int, image string) {
	w.Helper()
	w.calm(w.Poll, set, replicas, image)
}

// calm is settled with another poll. The API server may be down.
func (w *world) calm(poll await.Poll, set client.Object, replicas int, image string) {
	w.Helper()
	poll.Success(w, fmt.Sprintf("%s has %d ready pods with %s", set.GetName(), replicas, image), func(ctx context.Context) error {
		pods, err := w.pods(ctx, set.GetName())
		if err = errors.Join(err, w.Client.Get(ctx, client.ObjectKeyFromObject(set), set)); err != nil {
			return err
		}
		for name, pod := range pods {
			if pod.DeletionTimestamp != nil || !planning.Ready(pod) || pod.Spec.Containers[0].Image != image {
				return fmt.Errorf(
					"%d pods, of which %s has labels %v, image %s, ready %t", len(pods), name, pod.Labels, pod.Spec.Containers[0].Image, planning.Ready(pod),
				)
			}
		}
		if len(pods) != replicas {
			return fmt.Errorf("%d pods", len(pods))
		}
		return w.statusGap(set, int32(replicas)) //nolint:gosec // a small number
	})
}

func (w *world) statusGap(set client.Object, replicas int32) error {
	var observed int64
	var counts [4]int32
	switch set := set.(type) {
	case *v1alpha1.CloneSet:
		s := set.Status
		observed, counts = s.ObservedGeneration, [4]int32{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas}
	case *v1beta1.StatefulSet:
		s := set.Status
		observed, counts = s.ObservedGeneration, [4]int32{s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpdatedReplicas}
	}
	return await.ErrorIf(observed != set.GetGeneration() || counts != [4]int32{replicas, replicas, replicas, replicas},
		"status of generation %d: replicas, ready, available, updated %v, want generation %d and %d", observed, counts, set.GetGeneration(), replicas)
}
