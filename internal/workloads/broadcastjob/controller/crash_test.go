// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
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

// newer is the resource version of what was written: the fake client begins with 1 for each object.
const newer = "1000"

var errLost = errors.New("connection lost")

// world is a job, its nodes and pods, and a clock. Writes fail, or take place and their answers are lost.
type world struct {
	*testing.T
	mu         sync.Mutex
	random     *rand.Rand
	api        client.WithWatch
	jobs, pods *store
	nodeStore  fakeapi.Store
	nodes      []*corev1.Node
	now        time.Time
	controller *controller.Controller
	// created counts the pods of each name.
	created map[string]int
	// calm is whether all writes succeed.
	calm bool
}

func newWorld(t *testing.T, seed uint64, job *v1alpha1.BroadcastJob) *world {
	t.Helper()
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 5)), now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), created: map[string]int{}}
	w.api = fakeapi.Client(t, job).WithStatusSubresource(job, &corev1.Pod{}).Build()
	w.jobs = &store{Indexer: fakeapi.NewStore[any](t, reconciler.PodIndexers(), nil).Indexer}
	w.pods = &store{Indexer: fakeapi.NewStore[any](t, reconciler.PodIndexers(), nil).Indexer}
	for range 4 {
		w.join()
	}
	w.nodeStore = fakeapi.NewStore(t, nil, w.nodes)
	w.restart()
	return w
}

// join adds a node, which is the first one to get a pod.
func (w *world) join() {
	if n := 99 - len(w.nodes); n > 88 {
		w.nodes = append(w.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", n)}})
	}
}

// restart starts another process, whose caches are filled.
func (w *world) restart() {
	w.fill(w.jobs, w.pods)
	gate := reconciler.NewGate()
	gate.Set(true)
	now := func() time.Time { return w.now }
	writes := interceptor.NewClient(w.api, w.faults())
	live := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			o.SetResourceVersion(newer)
			return err
		},
	})
	w.controller = controller.New(controller.Options{
		Jobs: w.jobs, Pods: w.pods, Nodes: w.nodeStore, Gate: gate, Client: writes, Live: live,
		Executor: apply.New(apply.Options{
			Client: writes, Live: live, Parallel: 3, Budget: time.Second, Timeout: time.Minute, Now: now, Wrote: func(string, string, string) {},
			DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
				old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
				return w.fault(w.pods, func() error { return w.api.Delete(ctx, old, client.Preconditions(conditions)) })
			},
		}),
		Recorder: record.NewFakeRecorder(1000), Metrics: noMetrics{}, Now: now,
	})
}

// fault makes the write fail, or loses its answer.
func (w *world) fault(s *store, write func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.synced = false
	if w.calm {
		return write()
	}
	switch w.random.IntN(5) {
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
			err := w.fault(w.pods, func() error {
				err := c.Create(ctx, o, options...)
				if err == nil {
					w.created[o.GetName()]++
					o.SetResourceVersion(newer)
				}
				return err
			})
			if err != nil {
				o.SetResourceVersion("") // Nobody knows it.
			}
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			return w.fault(w.jobs, func() error { return c.SubResource(resource).Patch(ctx, o, p, options...) })
		},
	}
}

// fill makes caches as the API server.
func (w *world) fill(stores ...*store) {
	w.Helper()
	for _, s := range stores {
		var all []any
		if s == w.jobs {
			jobs := &v1alpha1.BroadcastJobList{}
			if err := w.api.List(w.Context(), jobs); err != nil {
				w.Fatal(err)
			}
			for i := range jobs.Items {
				all = append(all, &jobs.Items[i])
			}
		} else {
			for _, pod := range w.list() {
				all = append(all, pod)
			}
		}
		if err := s.Replace(all, ""); err != nil {
			w.Fatal(err)
		}
		s.synced = true
	}
}

func (w *world) list() (pods []*corev1.Pod) {
	w.Helper()
	list := &corev1.PodList{}
	if err := w.api.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}

// progress ends a random pod that runs.
func (w *world) progress(phase corev1.PodPhase) {
	w.Helper()
	pods := slices.DeleteFunc(w.list(), planning.Finished)
	if len(pods) == 0 {
		return
	}
	pod := pods[w.random.IntN(len(pods))]
	pod.Status.Phase = phase
	if err := w.api.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

// reconcile reconciles the job, and checks that parallelism was not exceeded.
func (w *world) reconcile(job *v1alpha1.BroadcastJob) {
	w.Helper()
	w.now = w.now.Add(200 * time.Millisecond)
	// Errors are those of the faults: the next reconcile tries again.
	_, _ = w.controller.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
	running := 0
	for _, pod := range w.list() {
		if !planning.Finished(pod) {
			running++
		}
	}
	if most := job.Spec.Parallelism.IntValue(); running > most {
		w.Fatalf("%d pods run, at most %d may", running, most)
	}
}

// TestNoNodeRunsTwice loses writes and answers, delays caches, and ends the process between any two reconciles.
func TestNoNodeRunsTwice(t *testing.T) {
	for seed := range uint64(12) {
		job := &v1alpha1.BroadcastJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1},
			Spec: v1alpha1.BroadcastJobSpec{
				Parallelism:   new(intstr.FromInt(1 + int(seed%2))),
				FailurePolicy: v1alpha1.BroadcastJobFailurePolicy{Type: v1alpha1.BroadcastJobFailFast},
				Template:      corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "report:1"}}}},
			},
		}
		w := newWorld(t, seed, job)
		fails := seed%4 == 3
		if seed%2 == 0 {
			job.Spec.FailurePolicy.Type = v1alpha1.BroadcastJobContinue
			if err := w.api.Update(t.Context(), job.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		for step := range 150 {
			switch w.random.IntN(10) {
			case 0:
				if w.random.IntN(2) == 0 {
					w.restart()
				}
			case 1:
				w.progress(corev1.PodSucceeded)
			case 2:
				w.join()
				if err := w.nodeStore.Add(w.nodes[len(w.nodes)-1]); err != nil {
					t.Fatal(err)
				}
			case 3, 4, 5:
				w.fill([]*store{w.jobs, w.pods}[w.random.IntN(2)])
			default:
				if fails && step > 60 {
					w.progress(corev1.PodFailed)
				}
				w.reconcile(job)
			}
		}
		w.calm = true
		for range 40 {
			w.fill(w.jobs, w.pods)
			w.progress(corev1.PodSucceeded)
			w.reconcile(job)
		}
		check(t, seed, w, job)
	}
}

// check checks the end of a job.
func check(t *testing.T, seed uint64, w *world, job *v1alpha1.BroadcastJob) {
	t.Helper()
	if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	for name, times := range w.created {
		if times > 1 {
			t.Errorf("seed %d: pod %s was created %d times", seed, name, times)
		}
	}
	if !broadcastjob.Ended(job) {
		t.Errorf("seed %d: status %+v", seed, job.Status)
	}
	if job.Status.Phase == v1alpha1.BroadcastJobCompleted && int(job.Status.Desired) != len(w.created) {
		t.Errorf("seed %d: %d pods, status %+v", seed, len(w.created), job.Status)
	}
}
