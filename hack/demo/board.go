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

// board holds the servers as the API server's watch tells of them. Its methods may be
// called at the same time.
type board struct {
	// changed is told of each server whose marks changed, in order.
	changed func(server)

	mu sync.Mutex
	// live are the pods that are not ending.
	live map[string]server
	// gone are the pods that end, with the marks that they had when that began.
	gone map[string]server
	// changes counts the changes of what a server does.
	changes int
}

func newBoard(changed func(server)) *board {
	return &board{changed: changed, live: map[string]server{}, gone: map[string]server{}}
}

// follow fills the board from a watch of the example's pods until ctx ends. It returns
// when the first listing is in.
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
		return fmt.Errorf("watching the pods: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("listing the pods: %w", context.Cause(ctx))
	}
	return nil
}

// see takes in a pod as it is now.
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

// lose takes in a pod that is gone from the API server.
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

// end moves a server to those gone, unless it was ending before the board knew it.
func (b *board) end(s server, known bool) {
	if known {
		delete(b.live, s.name)
		b.gone[s.name] = s
	}
}

// now returns the servers that live, and those that went since the board began.
func (b *board) now() (live, gone map[string]server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.live), maps.Clone(b.gone)
}

// mute ends the telling of changes. The board goes on.
func (b *board) mute() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = func(server) {}
}

// seen returns how often a server changed from one to another of unmarked, idle and
// playing.
func (b *board) seen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changes
}
