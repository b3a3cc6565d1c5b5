// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads_test runs seamark-workloads against a real API server, with the rights of its
// service account. The nodes are simulated.
package workloads_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/api/apps/v1beta1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/internal/program/logging"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/expect"
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
	testing.TB
	env       *env.Env
	client    client.Client
	namespace string
	registry  *prometheus.Registry
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
	w := &world{TB: t, env: e, client: e.Client, namespace: e.Namespace(t)}
	t.Cleanup(w.clean)
	program.Grant(t, e)
	w.runNodes()
	return w
}

func parallel(set *v1beta1.StatefulSet) { set.Spec.PodManagementPolicy = "Parallel" }

// clean deletes the sets and their pods: nothing collects garbage here.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), await.Timeout)
	defer cancel()
	for _, object := range []client.Object{&v1alpha1.CloneSet{}, &v1beta1.StatefulSet{}, &corev1.Pod{}} {
		if err := w.client.DeleteAllOf(ctx, object, client.InNamespace(w.namespace), client.GracePeriodSeconds(0)); err != nil {
			w.Errorf("clean up: %v", err)
		}
	}
}

// runNodes simulates the nodes until the test ends.
func (w *world) runNodes() {
	w.Helper()
	nodes, err := kubelet.New(kubelet.Options{
		Config: w.env.Config, Namespace: w.namespace, Failed: func(err error) { w.Error(err) },
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { nodes.Run(ctx); close(done) }()
	w.Cleanup(func() { cancel(); <-done })
}

// start runs the program until the test ends or the returned function is called.
func (w *world) start() (stop func()) {
	w.Helper()
	return w.startWith(func(*workloads.Options) {})
}

func (w *world) startWith(change func(*workloads.Options)) (stop func()) {
	w.Helper()
	cancel, done := w.launch(change)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.Error("run the program:", err)
		}
	}
	w.Cleanup(stop)
	return stop
}

// launch runs the program until cancel is called or it ends, and sends the result to done.
func (w *world) launch(change func(*workloads.Options)) (cancel func(), done chan error) {
	w.Helper()
	var c configv1alpha1.WorkloadsConfiguration
	configv1alpha1.SetWorkloadsDefaults(&c)
	w.registry = prometheus.NewRegistry()
	options := workloads.Options{
		Config: w.env.Component(w, workloads.Name), Namespace: env.SystemNamespace, MetricsBindAddress: "0", HealthProbeBindAddress: "0",
		Controllers: c.Controllers, OpenKruiseNamespace: c.OpenKruise.Namespace, Registry: w.registry, Logger: w.logger(),
	}
	change(&options)
	running, err := workloads.New(options)
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done = make(chan error, 1)
	go func() { done <- running.Run(ctx) }()
	return cancel, done
}

// logger logs to stderr if the environment variable SEAMARK_TEST_LOG is set.
func (w *world) logger() logr.Logger {
	if os.Getenv("SEAMARK_TEST_LOG") == "" {
		return logr.Discard()
	}
	return logging.New(os.Stderr, configv1alpha1.Logging{Verbosity: 2})
}

// must fails the test on an error.
func (w *world) must(err error) {
	w.Helper()
	expect.NoError(w, err)
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
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.CloneSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, "image:1"),
		},
	}
	for _, each := range change {
		each(set)
	}
	w.must(w.client.Create(w.Context(), set))
	return set
}

func (w *world) statefulSet(name string, replicas int32, change ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	w.Helper()
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1beta1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, "image:1"), ServiceName: name,
		},
	}
	for _, each := range change {
		each(set)
	}
	w.must(w.client.Create(w.Context(), set))
	return set
}

// patch applies a merge patch to an object.
func (w *world) patch(object client.Object, body string, args ...any) {
	w.Helper()
	w.must(w.client.Patch(w.Context(), object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, body, args...))))
}

// pods returns the pods of a set by name.
func (w *world) pods(ctx context.Context, app string) (map[string]*corev1.Pod, error) {
	var list corev1.PodList
	err := w.client.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app})
	pods := make(map[string]*corev1.Pod)
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods, err
}

// settled waits until the set has exactly so many ready pods with the image, and its status says so.
func (w *world) settled(set client.Object, replicas int, image string) {
	w.Helper()
	await.Until(w, fmt.Sprintf("%s has %d ready pods with %s", set.GetName(), replicas, image), func(ctx context.Context) (string, error) {
		pods, err := w.pods(ctx, set.GetName())
		if err != nil {
			return "", err
		}
		for name, pod := range pods {
			if pod.DeletionTimestamp != nil || !isReady(pod) || pod.Spec.Containers[0].Image != image {
				return fmt.Sprintf("%d pods, of which %s has image %s, ready %t", len(pods), name, pod.Spec.Containers[0].Image, isReady(pod)), nil
			}
		}
		if len(pods) != replicas {
			return fmt.Sprintf("%d pods", len(pods)), nil
		}
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return "", err
		}
		return w.statusGap(set, int32(replicas)), nil //nolint:gosec // a small number
	})
}

func (w *world) statusGap(set client.Object, replicas int32) string {
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
	if observed != set.GetGeneration() || counts != [4]int32{replicas, replicas, replicas, replicas} {
		return fmt.Sprintf("status of generation %d: replicas, ready, available, updated %v, want generation %d and %d",
			observed, counts, set.GetGeneration(), replicas)
	}
	return ""
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
