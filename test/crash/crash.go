// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash tests controllers of workloads with an API server that loses writes and answers, caches that are late,
// and processes that end between any two reconciles.
package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// parallel is the number of writes of a step at a time.
const parallel = 3

var errLost = errors.New("connection lost")

// Fate is what becomes of a write.
type Fate int

// The fates: the write takes place, does not, or does, and its answer is lost.
const (
	Done Fate = iota
	Lost
	Unanswered
)

// World is an API server, the caches of a process, and a clock.
type World struct {
	testing.TB
	Random *rand.Rand
	// API is the API server, which loses nothing.
	API client.WithWatch
	// Now is the time.
	Now time.Time
	// Fate returns what becomes of a write: create, delete or patch. At first, one of three is lost or unanswered.
	Fate func(verb string) Fate
	// Created counts the objects of each name that were created.
	Created map[string]int

	mu     sync.Mutex
	stores []*store
	// version is the highest resource version, which the fake client does not have, and versions are those of objects.
	version  int
	versions map[client.ObjectKey]string
}

// store is an informer whose cache a test fills.
type store struct {
	toolscache.Indexer
	list    client.ObjectList
	version int
}

func (s *store) GetIndexer() toolscache.Indexer { return s }

func (s *store) LastStoreSyncResourceVersion() string { return strconv.Itoa(s.version) }

// New returns a World with the objects at a time.
func New(tb testing.TB, seed uint64, now time.Time, objects ...client.Object) *World {
	tb.Helper()
	w := &World{TB: tb, Random: rand.New(rand.NewPCG(seed, 3)), Now: now, Created: map[string]int{}, version: 1, versions: map[client.ObjectKey]string{}}
	w.Fate = func(string) Fate { return Fate(max(0, w.Random.IntN(6)-3)) }
	w.API = fakeapi.Client(tb, objects...).WithStatusSubresource(
		&corev1.Pod{}, &batchv1.Job{}, &v1alpha1.AdvancedCronJob{}, &v1alpha1.BroadcastJob{}, &v1alpha1.ImagePullJob{}).Build()
	return w
}

// Store returns a cache of the objects of the type of a list.
func (w *World) Store(list client.ObjectList) reconciler.Store {
	w.Helper()
	s := &store{Indexer: fakeapi.NewStore[any](w, reconciler.ControllerIndexers(), nil).Indexer, list: list}
	w.stores = append(w.stores, s)
	return s
}

// Fill makes the caches as the API server is.
func (w *World) Fill() {
	w.Helper()
	for _, s := range w.stores {
		w.fill(s)
	}
}

// FillOne makes a random cache as the API server is.
func (w *World) FillOne() {
	w.Helper()
	w.fill(w.stores[w.Random.IntN(len(w.stores))])
}

func (w *World) fill(s *store) {
	w.Helper()
	var all []any
	for _, object := range List[client.Object](w, s.list) {
		all = append(all, object)
	}
	expect.NoError(w, s.Replace(all, ""))
	s.version = w.version
}

// List returns the objects of the type of a list.
func List[T client.Object](w *World, list client.ObjectList) (objects []T) {
	w.Helper()
	list = list.DeepCopyObject().(client.ObjectList)
	expect.NoError(w, w.API.List(w.Context(), list))
	items, err := meta.ExtractList(list)
	expect.NoError(w, err)
	for _, item := range items {
		objects = append(objects, item.(T))
	}
	return objects
}

// Options returns the dependencies of a new process, whose caches are filled.
func (w *World) Options(stores reconciler.Stores) (reconciler.Options, client.Reader) {
	w.Helper()
	w.Fill()
	pause := reconciler.NewPause()
	pause.Set(false)
	now := func() time.Time { return w.Now }
	live := interceptor.NewClient(w.API, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, o, options...)
			w.mu.Lock()
			defer w.mu.Unlock()
			o.SetResourceVersion(w.versions[key])
			return err
		},
	})
	writes := interceptor.NewClient(w.API, w.faults())
	return reconciler.Options{
		Stores: stores, Client: writes, Live: live, Pause: pause, Recorder: record.NewFakeRecorder(10_000), Metrics: noMetrics{}, Now: now,
		Executor: apply.New(apply.Options{
			Client: writes, Live: live, Parallel: parallel, Budget: time.Second, Timeout: time.Minute, Now: now, Wrote: func(string, string, string) {}, Failed: func(string) {},
			DeletePod: func(ctx context.Context, pod types.NamespacedName, conditions metav1.Preconditions) error {
				return writes.Delete(
					ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}, client.Preconditions(conditions),
				)
			},
		}),
	}, live
}

type noMetrics struct{}

func (noMetrics) Failed(string)        {}
func (noMetrics) Waited(string)        {}
func (noMetrics) StatusWritten(string) {}

// write decides about a write to an object, which has a new resource version if it is answered.
func (w *World) write(verb string, object client.Object, write func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fate := w.Fate(verb)
	if fate == Lost {
		return errLost
	}
	err := write()
	if err != nil {
		return err
	}
	w.version++
	version := strconv.Itoa(w.version)
	w.versions[client.ObjectKeyFromObject(object)] = version
	if fate == Unanswered {
		object.SetResourceVersion("")
		return errLost
	}
	object.SetResourceVersion(version)
	return nil
}

func (w *World) faults() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return w.write("create", o, func() error {
				o.SetUID(types.UID(fmt.Sprint("uid-", w.Random.Uint64())))
				o.SetCreationTimestamp(metav1.NewTime(w.Now))
				err := c.Create(ctx, o, options...)
				if err == nil {
					w.Created[o.GetName()]++
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return w.write("delete", o, func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			return w.write("patch", o, func() error { return c.SubResource(resource).Patch(ctx, o, p, options...) })
		},
	}
}

// Reconcile reconciles an object. Errors are those of the faults: the next reconcile tries again.
func (w *World) Reconcile(controller reconcile.Reconciler, object client.Object) {
	_, _ = controller.Reconcile(w.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
}
