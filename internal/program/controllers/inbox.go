// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Inbox enqueues objects in the queues of other controllers. It is safe for concurrent use.
// The zero value is ready for use.
type Inbox struct {
	mu    sync.Mutex
	sinks []func(types.NamespacedName)
}

// Source returns a source of the controller that receives the objects.
func (i *Inbox) Source() source.Source { return i.Feed(Enqueue) }

// Feed returns a source of a controller that receives the objects in add, which adds to its queue
// what the object stands for. It must be safe for concurrent use.
func (i *Inbox) Feed(add func(q Queue, name types.NamespacedName)) source.Source {
	return source.Func(func(_ context.Context, q Queue) error {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.sinks = append(i.sinks, func(name types.NamespacedName) { add(q, name) })
		return nil
	})
}

// Enqueue adds the named objects to every queue. An object is lost if its controller has not
// started, which then gets an event for every object anyway.
func (i *Inbox) Enqueue(names ...types.NamespacedName) {
	i.mu.Lock()
	sinks := slices.Clone(i.sinks)
	i.mu.Unlock()
	for _, sink := range sinks {
		for _, name := range names {
			sink(name)
		}
	}
}
