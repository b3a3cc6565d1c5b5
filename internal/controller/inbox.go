// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Inbox enqueues objects in the queues of other controllers. It is safe for concurrent use.
// The zero value is ready for use, and a nil Inbox drops what it gets.
type Inbox struct {
	mu     sync.Mutex
	queues []Queue
}

// Source returns a source of the controller that receives the objects.
func (i *Inbox) Source() source.Source {
	return source.Func(func(_ context.Context, q Queue) error {
		i.Attach(q)
		return nil
	})
}

// Attach adds a queue.
func (i *Inbox) Attach(q Queue) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queues = append(i.queues, q)
}

// Enqueue adds the named objects to every queue. An object is lost if its controller has not
// started, which then gets an event for every object anyway.
func (i *Inbox) Enqueue(names ...types.NamespacedName) {
	if i == nil {
		return
	}
	i.mu.Lock()
	queues := slices.Clone(i.queues)
	i.mu.Unlock()
	for _, q := range queues {
		for _, name := range names {
			Enqueue(q, name)
		}
	}
}
