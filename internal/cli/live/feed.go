// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"slices"
	"sync"
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
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/program/permission"
)

// backoff is the time between attempts in an outage. It is shorter than that of controllers,
// because a user waits.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Cap: 10 * time.Second, Steps: 10, Factor: 2, Jitter: 0.5}
}

// Resource is one resource that Follow lists and watches.
type Resource struct {
	resource  permission.Resource
	namespace string
	newList   func() client.ObjectList
	which     []client.ListOption
	trim      func(runtime.Object) (runtime.Object, error)
	store     cache.ReflectorStore
	// first is what was listed already, or nil.
	first client.ObjectList
}

// From returns the resource with what the caller has listed: the first request is the watch from there.
func (r Resource) From(list client.ObjectList) Resource {
	r.first = list
	return r
}

// ResourceOf returns the objects of the resource that the options select, in the namespace, or in all if it
// is empty or the resource has none. They fill the collection, which may have several resources in different
// namespaces. The list is an empty one.
func ResourceOf[T client.Object](resource permission.Resource, namespace string, list client.ObjectList, store *Collection[T], which ...client.ListOption) Resource {
	return Resource{
		resource: resource, namespace: namespace, which: append(which, client.InNamespace(namespace)), store: part[T]{store, namespace},
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
	Resource
	client client.WithWatch
	health *health
	// ready is closed when the source is listed and watched, or is known to be missing.
	ready chan struct{}
	// lacks is called if the resource cannot be read, and fail with its error, or with another one that
	// occurs before ready.
	lacks func(permission.Missing) error
	fail  func(error)
	// listed is whether the source was listed. Requests of a reflector do not overlap.
	listed bool
	stop   context.CancelFunc
}

// Follow lists and then watches the sources until the context is canceled or stop is called, which
// waits for the requests. It returns once all sources are watched, or are known to be missing: lacks is
// called for each of these, by several goroutines, and ends all if it returns an error. After that,
// requests that fail are repeated, and notify is called with a line for the user when this begins and
// ends.
func Follow(ctx context.Context, c client.WithWatch, sources []Resource, lacks func(permission.Missing) error, notify func(line string)) (stop func(), err error) {
	return follow(ctx, c, sources, lacks, newHealth(notify))
}

// FollowAllowed is Follow for a caller that shows no lines to a user. refused is called with the error if the
// API server refuses a request after all sources are watched.
func FollowAllowed(
	ctx context.Context, c client.WithWatch, sources []Resource, lacks func(permission.Missing) error, refused func(error),
) (stop func(), err error) {
	health := newHealth(func(string) {})
	health.refused = refused
	return follow(ctx, c, sources, lacks, health)
}

// follow is Follow, and records in health which requests fail.
func follow(ctx context.Context, c client.WithWatch, sources []Resource, lacks func(permission.Missing) error, health *health) (stop func(), err error) {
	// Without a logger of its own, client-go writes to standard error.
	ctx, fail := context.WithCancelCause(klog.NewContext(ctx, logr.Discard()))
	var running sync.WaitGroup
	stop = func() {
		fail(nil)
		running.Wait()
	}
	var feeds []*feed
	for _, source := range sources {
		f := &feed{Resource: source, client: c, health: health, ready: make(chan struct{}), lacks: lacks, fail: fail}
		feeds = append(feeds, f)
		running.Go(func() { f.run(ctx) })
	}
	for _, f := range feeds {
		select {
		case <-f.ready:
		case <-ctx.Done():
			stop()
			return nil, context.Cause(ctx)
		}
	}
	return stop, nil
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
	var invalid, err error
	take := func(page client.ObjectList) {
		all.ResourceVersion = page.GetResourceVersion()
		invalid = meta.EachListItem(page, func(object runtime.Object) error {
			trimmed, err := f.trim(object)
			if err == nil {
				all.Items = append(all.Items, trimmed)
			}
			return err
		})
	}
	if first := f.first; first != nil {
		f.first = nil
		take(first)
	} else {
		err = cluster.Pages(ctx, f.client, f.newList(), take, f.which...)
	}
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
		if missing != nil {
			fatal = f.lacks(*missing)
		}
		if fatal != nil {
			f.fail(fatal)
			return err
		}
		// What was listed would not change. Without objects there is no error.
		_ = f.store.Replace(nil, "")
		f.stop()
		f.setReady()
	}
	return err
}
