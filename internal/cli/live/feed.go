// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// backoff is the time between attempts in an outage. It is shorter than that of controllers,
// because a user waits.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Cap: 10 * time.Second, Steps: 10, Factor: 2, Jitter: 0.5}
}

// source is one resource of a watch.
type source struct {
	resource  permission.Resource
	namespace string
	newList   func() client.ObjectList
	which     []client.ListOption
	trim      func(runtime.Object) (runtime.Object, error)
	store     cache.ReflectorStore
}

// sourceOf returns the source of a collection. The list is an empty one.
func sourceOf[T client.Object](resource permission.Resource, namespace string, list client.ObjectList, store *collection[T], which []client.ListOption) source {
	return source{
		resource: resource, namespace: namespace, which: which, store: store,
		newList: func() client.ObjectList {
			empty, _ := list.DeepCopyObject().(client.ObjectList)
			return empty
		},
		trim: func(object runtime.Object) (runtime.Object, error) {
			item, err := as[T](object)
			if err != nil {
				return nil, err
			}
			return store.trim(item), nil
		},
	}
}

// feed lists and watches one source until its context is canceled.
type feed struct {
	source
	client client.WithWatch
	health *health
	// ready is closed when the source is listed and watched, or is known to be missing.
	ready chan struct{}
	// lacks is called if the resource cannot be read, fail if another error occurs before ready.
	lacks func(permission.Missing)
	fail  func(error)
	// listed is whether the source was listed. Requests of a reflector do not overlap.
	listed bool
	stop   context.CancelFunc
}

func (f *feed) run(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	defer f.stop()
	logger := logr.Discard()
	requests := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	// A streamed list has one page. It takes more memory than pages that are trimmed one by one.
	pages := cache.ToListWatcherWithWatchListSemantics(requests, cluster.Paged{})
	cache.NewReflectorWithOptions(pages, nil, f.store, cache.ReflectorOptions{
		Name: string(f.resource), Logger: &logger, Backoff: backoff(),
	}).RunWithContext(ctx)
}

// list lists all objects in pages, and trims each page.
func (f *feed) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	all := &metainternalversion.List{}
	var invalid error
	err := cluster.Each(ctx, f.client, f.newList, func(page client.ObjectList) {
		all.ResourceVersion = page.GetResourceVersion()
		invalid = meta.EachListItem(page, func(object runtime.Object) error {
			trimmed, err := f.trim(object)
			if err == nil {
				all.Items = append(all.Items, trimmed)
			}
			return err
		})
	}, f.which...)
	if err == nil {
		err = invalid
	}
	if err != nil {
		return nil, f.failed(ctx, "list", err)
	}
	if f.listed {
		f.health.relisted(f.resource)
	}
	f.listed = true
	return all, nil
}

// watch starts a watch.
func (f *feed) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	which := slices.Concat([]client.ListOption{&client.ListOptions{Raw: &options}}, f.which)
	events, err := f.client.Watch(ctx, f.newList(), which...)
	if err != nil {
		return nil, f.failed(ctx, "watch", err)
	}
	f.health.works(f.resource)
	f.setReady()
	return events, nil
}

func (f *feed) setReady() {
	if !f.isReady() {
		close(f.ready)
	}
}

func (f *feed) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// failed handles the error of a request, and returns it for the reflector.
func (f *feed) failed(ctx context.Context, verb string, err error) error {
	switch {
	case ctx.Err() != nil:
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		// The reflector lists again.
	case f.isReady():
		f.health.fails(f.resource, err)
	default:
		missing, fatal := cluster.MissingOf(err, verb, f.resource, f.namespace)
		if missing == nil {
			f.fail(fatal)
			return err
		}
		f.lacks(*missing)
		f.stop()
		f.setReady()
	}
	return err
}
