// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/cronjob/controller"
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

var errLost = errors.New("connection lost")

// world is an object, its Jobs and a clock. Writes fail, or take place and their answers are lost.
type world struct {
	*testing.T
	random        *rand.Rand
	api           client.WithWatch
	objects, jobs *store
	now           time.Time
	controller    *controller.Controller
	// started counts the Jobs that were created by name.
	started map[string]int
	// deletes is whether somebody else deletes Jobs. Then the process goes on and no answer to a creation is lost:
	// nobody could know that the slot was started.
	deletes bool
	// keeps is whether the API server refuses to delete Jobs.
	keeps bool
}

func newWorld(t *testing.T, seed uint64, object *v1alpha1.AdvancedCronJob) *world {
	t.Helper()
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 3)), now: object.CreationTimestamp.Time, started: map[string]int{}}
	w.api = fakeapi.Client(t, object).WithStatusSubresource(object, &batchv1.Job{}).Build()
	w.objects = &store{Indexer: fakeapi.NewStore[any](t, nil, nil).Indexer}
	w.jobs = &store{Indexer: fakeapi.NewStore[any](t, reconciler.PodIndexers(), nil).Indexer}
	w.restart()
	return w
}

// restart starts another process, whose caches are filled.
func (w *world) restart() {
	w.fill()
	gate := reconciler.NewGate()
	gate.Set(true)
	w.controller = controller.New(controller.Options{
		Objects: w.objects, Jobs: w.jobs, Gate: gate, Client: interceptor.NewClient(w.api, w.faults()), Live: w.api,
		Recorder: record.NewFakeRecorder(1000), Metrics: noMetrics{}, Now: func() time.Time { return w.now },
	})
}

// fault makes the write fail, or loses its answer. Both are rare enough that the object goes on.
func (w *world) fault(write func() error) error {
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
			w.jobs.synced = false
			if w.deletes && w.random.IntN(6) == 0 {
				return errLost
			}
			create := func() error {
				err := c.Create(ctx, o, options...)
				if err == nil {
					w.started[o.GetName()]++
				}
				return err
			}
			if w.deletes {
				return create()
			}
			return w.fault(create)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			w.jobs.synced = false
			if w.keeps {
				return errLost
			}
			return w.fault(func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			w.objects.synced = false
			return w.fault(func() error { return c.SubResource(resource).Patch(ctx, o, p, options...) })
		},
	}
}

// fill makes the caches as the API server.
func (w *world) fill() {
	w.Helper()
	objects, jobs := &v1alpha1.AdvancedCronJobList{}, &batchv1.JobList{}
	if err := errors.Join(w.api.List(w.Context(), objects), w.api.List(w.Context(), jobs)); err != nil {
		w.Fatal(err)
	}
	var all [2][]any
	for i := range objects.Items {
		all[0] = append(all[0], &objects.Items[i])
	}
	for i := range jobs.Items {
		all[1] = append(all[1], &jobs.Items[i])
	}
	for i, s := range []*store{w.objects, w.jobs} {
		if err := s.Replace(all[i], ""); err != nil {
			w.Fatal(err)
		}
		s.synced = true
	}
}

// job returns a random Job, or nil.
func (w *world) job() *batchv1.Job {
	jobs := &batchv1.JobList{}
	if err := w.api.List(w.Context(), jobs); err != nil {
		w.Fatal(err)
	}
	if len(jobs.Items) == 0 {
		return nil
	}
	return &jobs.Items[w.random.IntN(len(jobs.Items))]
}

// complete ends a random Job.
func (w *world) complete() {
	job := w.job()
	if job == nil {
		return
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	job.Status.CompletionTime = new(metav1.NewTime(w.now.Truncate(time.Second)))
	if err := w.api.Status().Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

// TestNoSlotStartsTwice loses writes and answers, and delays the cache. In half of the seeds, it ends the process between
// any two reconciles; in the others, somebody else deletes Jobs. Each slot starts once at most, although finished Jobs are
// deleted at once, and the object goes on.
func TestNoSlotStartsTwice(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(30) {
		object := &v1alpha1.AdvancedCronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
			Spec: v1alpha1.AdvancedCronJobSpec{
				Schedule: "* * * * *", SuccessfulJobsHistoryLimit: new(int32(seed % 2)),
				ConcurrencyPolicy: []v1alpha1.ConcurrencyPolicy{v1alpha1.AllowConcurrent, v1alpha1.ForbidConcurrent, v1alpha1.ReplaceConcurrent}[seed%3],
				Template:          v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: []byte(`{"spec": {"template": {}}}`)}},
			},
		}
		w := newWorld(t, seed, object)
		w.deletes = seed%4 > 1
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
		for range 200 {
			switch w.random.IntN(8) {
			case 0:
				if job := w.job(); !w.deletes {
					w.restart()
				} else if job != nil {
					_ = w.api.Delete(t.Context(), job)
				}
			case 1, 2:
				w.complete()
			case 3:
				w.now = w.now.Add(time.Duration(w.random.IntN(70)) * time.Second)
			case 4, 5:
				w.fill()
			default:
				// Errors are those of the faults: the next reconcile tries again.
				_, _ = w.controller.Reconcile(t.Context(), request)
			}
		}
		for name, times := range w.started {
			if times > 1 {
				t.Fatalf("seed %d: Job %s was created %d times", seed, name, times)
			}
		}
		if len(w.started) < 5 {
			t.Fatalf("seed %d: only %d slots were started", seed, len(w.started))
		}
	}
}

// TestRunsGoOnWhileTheHistoryCannotBeDeleted refuses all deletions.
func TestRunsGoOnWhileTheHistoryCannotBeDeleted(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	object := &v1alpha1.AdvancedCronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec: v1alpha1.AdvancedCronJobSpec{
			Schedule: "* * * * *", SuccessfulJobsHistoryLimit: new(int32(0)),
			Template: v1alpha1.CronJobTemplate{JobTemplate: &runtime.RawExtension{Raw: []byte(`{"spec": {"template": {}}}`)}},
		},
	}
	w := newWorld(t, 1, object)
	w.keeps = true
	for range 20 {
		w.now = w.now.Add(time.Minute)
		// Writes fail at random: each slot has several reconciles.
		for range 10 {
			w.fill()
			_, _ = w.controller.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			w.complete()
		}
	}
	if len(w.started) != 20 {
		t.Errorf("%d slots were started, want 20", len(w.started))
	}
}
