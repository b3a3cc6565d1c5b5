// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/integration/env"
)

// audit watches all pods of a set and checks what must hold at every moment, whatever happens to the
// program.
type audit struct {
	w *world
	// owner is the UID of the set.
	owner types.UID
	app   string
	// hook is the label that holds pods before their deletion.
	hook string

	mu sync.Mutex
	// created are the names of all pods that were created, by UID.
	created map[types.UID]string
	pods    map[types.UID]*corev1.Pod
	// most is the maximum number of pods that are not terminating, least the minimum of ready pods.
	most, least int
	problems    []string
}

// audit starts an audit of the pods with the label app, which ends with the test.
func (w *world) audit(set client.Object) *audit {
	w.Helper()
	a := &audit{
		w: w, owner: set.GetUID(), app: set.GetName(), hook: "hook",
		created: map[types.UID]string{}, pods: map[types.UID]*corev1.Pod{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			a.follow(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // The API server may be down.
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
	return a
}

// follow lists and watches the pods until the watch ends.
func (a *audit) follow(ctx context.Context) {
	var list corev1.PodList
	options := []client.ListOption{client.InNamespace(a.w.Namespace), client.MatchingLabels{"app": a.app}}
	if err := a.w.Client.List(ctx, &list, options...); err != nil {
		return
	}
	a.replace(list.Items)
	stream, err := a.w.Client.Watch(ctx, &list,
		append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		return
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok {
			a.see(pod, event.Type == watch.Deleted)
		} else {
			return
		}
	}
}

// replace checks the pods after a gap in the events. Only the whole list is a state that was there.
func (a *audit) replace(pods []corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.pods
	a.pods = map[types.UID]*corev1.Pod{}
	for i := range pods {
		a.check(&pods[i], known[pods[i].UID])
		a.pods[pods[i].UID] = &pods[i]
	}
	a.count("several pods")
}

// see checks a new version of a pod.
func (a *audit) see(pod *corev1.Pod, deleted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.check(pod, a.pods[pod.UID])
	a.pods[pod.UID] = pod
	if deleted {
		delete(a.pods, pod.UID)
	}
	a.count(pod.Name)
}

// check checks what must hold for one pod. Old is its version before, nil if it is not known.
func (a *audit) check(pod, old *corev1.Pod) {
	a.created[pod.UID] = pod.Name
	if controller := metav1.GetControllerOf(pod); controller == nil || controller.UID != a.owner {
		a.problem("pod %s is not owned by the set", pod.Name)
	}
	ends := pod.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil)
	if _, held := pod.Labels[a.hook]; ends && held {
		a.problem("pod %s is deleted in state %s although the hook holds it", pod.Name, pod.Labels[pub.LifecycleStateKey])
	}
}

// count checks the numbers of pods after a change of what is named.
func (a *audit) count(changed string) {
	live, ready := 0, 0
	for _, p := range a.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		live++
		if planning.Ready(p) {
			ready++
		}
	}
	if live > a.most {
		a.problem("%d pods, at most %d are allowed", live, a.most)
	}
	if ready < a.least {
		a.problem("%d ready pods after a change of %s, at least %d are required", ready, changed, a.least)
	}
}

func (a *audit) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// allow sets the bounds of the next phase.
func (a *audit) allow(least, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.least, a.most = least, most
}

// finish reports the problems, and a number of created pods that is not the expected one.
func (a *audit) finish(created int) {
	a.w.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, problem := range a.problems {
		a.w.Error(problem)
	}
	if len(a.created) != created {
		var names []string
		for _, name := range a.created {
			names = append(names, name)
		}
		slices.Sort(names)
		a.w.Errorf("%d pods were created, want %d: %v", len(a.created), created, names)
	}
}

// release acts for the owner of the hook: it lets go of pods that are about to be deleted.
func (w *world) release(app string) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var list corev1.PodList
			_ = w.Client.List(ctx, &list, client.InNamespace(w.Namespace), client.MatchingLabels{
				"app": app, "hook": "on", pub.LifecycleStateKey: string(pub.LifecycleStatePreparingDelete),
			})
			for i := range list.Items {
				_ = w.Client.Patch(ctx, &list.Items[i],
					env.MergePatch(`{"metadata":{"labels":{"hook":null}}}`))
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
}
