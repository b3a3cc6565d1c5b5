// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow lists objects and then watches them. Unlike a bare watch, it continues where it was
// if the API server ends the watch, as it may do at any time: after a timeout, or because a client
// on a busy machine reads its events too slowly.
package follow

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errEnded is the reason of a watch that cannot continue: the API server no longer has the events
// that follow the last one.
var errEnded = errors.New("the watch ended")

// Objects calls see with an Added event per listed object before it returns, and then with each
// change, in another goroutine, until ctx ends. It never skips a change: if the API server no longer
// has one, the watch ends early. wait blocks until see is not called any more, and returns an error
// if that was before the end of ctx. It may be called once.
func Objects(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(watch.Event), opts ...client.ListOption) (wait func() error, err error) {
	if err := c.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		see(watch.Event{Type: watch.Added, Object: object})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %T: %w", list, err)
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			empty := list.DeepCopyObject().(client.ObjectList)
			return c.Watch(ctx, empty, append(append([]client.ListOption{}, opts...), &client.ListOptions{Raw: &options})...)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", list, err)
	}
	done := make(chan error, 1)
	go func() { done <- run(ctx, watcher.ResultChan(), see) }()
	return func() error { return <-done }, nil
}

// run calls see with each event. It returns nil if ctx ended before the events did.
func run(ctx context.Context, events <-chan watch.Event, see func(watch.Event)) error {
	for event := range events {
		if event.Type == watch.Error {
			return fmt.Errorf("%w: %w", errEnded, apierrors.FromObject(event.Object))
		}
		see(event)
	}
	if ctx.Err() == nil {
		return errEnded
	}
	return nil
}
