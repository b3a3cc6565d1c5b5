// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull/controller"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

type noMetrics struct{}

func (noMetrics) Failed(string)        {}
func (noMetrics) Waited(string)        {}
func (noMetrics) StatusWritten(string) {}

// store is an informer whose cache a test fills. A cache that is not synced says so.
type store struct {
	toolscache.Indexer
	synced bool
}

func (s *store) GetIndexer() toolscache.Indexer { return s }

func (s *store) LastStoreSyncResourceVersion() string {
	if s.synced {
		return "1000000"
	}
	return "1"
}

var errLost = errors.New("connection lost")

// world is two jobs, their pods and nodes, and a clock. Writes fail, or take place and their answers are lost.
type world struct {
	*testing.T
	random            *rand.Rand
	api               client.WithWatch
	jobs, pods, nodes *store
	now               time.Time
	controller        *controller.Controller
	// asked counts the pods that were created, by name, and restarts the processes that ended.
	asked    map[string]int
	restarts int
	quiet    bool
}

const (
	limit, total = 3, 4
	nodes        = 8
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func uidOf(i int) types.UID { return types.UID(fmt.Sprint("uid-", i)) }

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 3)), now: noon, asked: map[string]int{}}
	var objects []client.Object
	for i := range 2 {
		job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", i), Name: "pull", UID: uidOf(i), Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		}}
		job.Spec.Image, job.Spec.Parallelism = "game:1", new(intstr.FromInt32(limit))
		job.Spec.PullPolicy = &v1alpha1.ImagePullJobPullPolicy{TimeoutSeconds: new(int32(1000)), BackoffLimit: new(int32(1000))}
		objects = append(objects, job)
	}
	w.api = fakeapi.Client(t, objects...).WithStatusSubresource(objects[0], &corev1.Pod{}).Build()
	w.jobs = &store{Indexer: fakeapi.NewStore[any](t, nil, nil).Indexer}
	w.pods = &store{Indexer: fakeapi.NewStore[any](t, reconciler.PodIndexers(), nil).Indexer}
	w.nodes = &store{Indexer: fakeapi.NewStore[any](t, nil, nil).Indexer, synced: true}
	for i := range nodes {
		at := metav1.NewTime(noon.Add(-time.Hour))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), CreationTimestamp: at}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at}}
		if err := w.nodes.Add(trim.NodeWithImages(node)); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	return w
}

// restart starts another process, whose caches are filled.
func (w *world) restart() {
	w.restarts++
	w.fill()
	gate := reconciler.NewGate()
	gate.Set(true)
	w.controller = controller.New(controller.Options{
		Jobs: w.jobs, Pods: w.pods, Nodes: w.nodes, Allowed: labels.Everything(), PerNode: 1, Total: total, Gate: gate,
		Client: interceptor.NewClient(w.api, w.faults()), Live: w.api,
		Recorder: record.NewFakeRecorder(10000), Metrics: noMetrics{}, Now: func() time.Time { return w.now },
	})
}

// fault makes the write fail, or loses its answer.
func (w *world) fault(write func() error) error {
	if w.quiet {
		return write()
	}
	switch w.random.IntN(6) {
	case 0:
		return errLost
	case 1:
		return errors.Join(write(), errLost)
	default:
		return write()
	}
}

func (w *world) faults() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			w.pods.synced = false
			return w.fault(func() error {
				o.SetUID(uidOf(1000 + w.random.IntN(1_000_000_000)))
				o.SetCreationTimestamp(metav1.NewTime(w.now))
				err := c.Create(ctx, o, options...)
				if err == nil {
					w.asked[o.GetName()]++
					err = c.Update(ctx, o) // To version 2: a cache that is not synced has 1.
				}
				w.check()
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return w.fault(func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			w.jobs.synced = false
			return w.fault(func() error { return c.SubResource(resource).Patch(ctx, o, p, options...) })
		},
	}
}

// check checks that no job has too many pods, nor a node or the cluster.
func (w *world) check() {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	perJob, perNode := map[string]int{}, map[string]int{}
	for i := range list.Items {
		perJob[list.Items[i].Namespace]++
		if perNode[list.Items[i].Spec.NodeName]++; perNode[list.Items[i].Spec.NodeName] > 1 {
			w.Fatalf("node %s has two pods", list.Items[i].Spec.NodeName)
		}
	}
	for job, n := range perJob {
		if n > limit {
			w.Fatalf("the job in %s has %d pods", job, n)
		}
	}
	if len(list.Items) > total {
		w.Fatalf("%d pods exist", len(list.Items))
	}
}

// fill makes the caches as the API server.
func (w *world) fill() {
	w.Helper()
	jobs, pods := &v1alpha1.ImagePullJobList{}, &corev1.PodList{}
	if err := errors.Join(w.api.List(w.Context(), jobs), w.api.List(w.Context(), pods)); err != nil {
		w.Fatal(err)
	}
	var all [2][]any
	for i := range jobs.Items {
		all[0] = append(all[0], &jobs.Items[i])
	}
	for i := range pods.Items {
		all[1] = append(all[1], &pods.Items[i])
	}
	for i, s := range []*store{w.jobs, w.pods} {
		if err := s.Replace(all[i], ""); err != nil {
			w.Fatal(err)
		}
		s.synced = true
	}
}

// report lets the kubelet of a random pod pull, or fail.
func (w *world) report() {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	if len(list.Items) == 0 {
		return
	}
	pod := &list.Items[w.random.IntN(len(list.Items))]
	status := corev1.ContainerStatus{Name: "pull", ImageID: "sha256:1"}
	if !w.quiet && w.random.IntN(4) == 0 {
		status = corev1.ContainerStatus{Name: "pull", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if err := w.api.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

func (w *world) reconcile() {
	job := client.ObjectKey{Namespace: fmt.Sprint("ns", w.random.IntN(2)), Name: "pull"}
	w.now = w.now.Add(25 * time.Millisecond)
	// Errors are those of the faults: the next reconcile tries again.
	_, _ = w.controller.Reconcile(w.Context(), reconcile.Request{NamespacedName: job})
}

// TestLimitsHoldAtAnyCrash loses writes and answers, delays the cache and ends the process between any two reconciles. No
// limit is exceeded, in the end each node has the image, and few nodes are asked again.
func TestLimitsHoldAtAnyCrash(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		for range 300 {
			switch w.random.IntN(9) {
			case 0:
				if w.random.IntN(4) == 0 {
					w.restart()
				}
			case 1, 2:
				w.report()
			case 3:
				w.now = w.now.Add(time.Duration(w.random.IntN(8)) * time.Second)
			case 4, 5:
				w.fill()
			default:
				w.reconcile()
			}
		}
		w.quiet = true
		for range 1000 {
			w.fill()
			w.report()
			w.reconcile()
		}
		w.fill()
		for _, each := range w.jobs.List() {
			if status := each.(*v1alpha1.ImagePullJob).Status; status.Succeeded != nodes || status.CompletionTime == nil {
				t.Fatalf("seed %d: status %+v", seed, status)
			}
		}
		for name, times := range w.asked {
			if times > 1+w.restarts {
				t.Errorf("seed %d: pod %s was created %d times, in %d processes", seed, name, times, w.restarts)
			}
		}
	}
}
