// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// board holds the servers as a watch reports them. It is safe for concurrent use.
type board struct {
	// changed is called for each server whose marks changed, in order.
	changed func(server)

	mu sync.Mutex
	// live holds the pods that are not terminating.
	live map[string]server
	// gone holds the terminating pods, with the marks that they had when termination began.
	gone map[string]server
	// changes counts how often the activity of a server changed.
	changes int
}

func newBoard(changed func(server)) *board {
	return &board{changed: changed, live: map[string]server{}, gone: map[string]server{}}
}

// follow updates the board from a watch of the example's pods until ctx ends. It returns after
// the first list.
func (b *board) follow(ctx context.Context, clientset kubernetes.Interface, e *example) error {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0,
		informers.WithNamespace(e.namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = e.pods.String() }))
	informer := factory.Core().V1().Pods().Informer()
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { b.see(object) },
		UpdateFunc: func(_, object any) { b.see(object) },
		DeleteFunc: func(object any) {
			if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			b.lose(object)
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("list pods: %w", context.Cause(ctx))
	}
	return nil
}

// see stores the current state of a pod.
func (b *board) see(object any) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return
	}
	s := readServer(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.live[s.name]
	if s.ending {
		b.end(s, known)
		return
	}
	b.live[s.name] = s
	if old.sameMarks(s) {
		return
	}
	if known && old.does() != s.does() {
		b.changes++
	}
	b.changed(s)
}

// lose handles a pod that was deleted.
func (b *board) lose(object any) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.live[pod.Name]
	b.end(readServer(pod), known)
}

// end moves a server to gone, unless it was already terminating when the watch began.
func (b *board) end(s server, known bool) {
	if known {
		delete(b.live, s.name)
		b.gone[s.name] = s
	}
}

// now returns the live servers, and those that have terminated since the watch began.
func (b *board) now() (live, gone map[string]server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.live), maps.Clone(b.gone)
}

// mute stops the calls of changed. The board is still updated.
func (b *board) mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = func(server) {}
}

// seen returns how often a server changed between unmarked, idle and playing.
func (b *board) seen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes
}
