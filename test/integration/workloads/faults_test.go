// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/integration/program"
)

// fate is what happens to a write of a process.
type fate int

const (
	// deliver executes the write and returns its response.
	deliver fate = iota
	// loseResponse executes the write. The process gets an error.
	loseResponse
	// dieAfter kills the process when the write has been executed, together with those that were sent
	// before.
	dieAfter
)

var (
	errDead = errors.New("the process is dead")
	errLost = errors.New("the response is lost")
)

// wire is the connection of one process to the API server.
type wire struct {
	base http.RoundTripper
	// decide returns the fate of the n-th write, from 1, to an object in the namespace.
	decide func(namespace string, n int) fate

	// sent are the writes that the API server is executing.
	sent sync.WaitGroup

	mu     sync.Mutex
	writes int
	dead   bool
	died   chan struct{}
	// posts counts the requests that create pods.
	posts int
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	fate, err := w.next(request)
	if err != nil {
		return nil, err
	}
	response, err := w.base.RoundTrip(request)
	if isWrite(request) {
		w.sent.Done()
	}
	if fate == deliver || err != nil {
		return response, err
	}
	_ = response.Body.Close()
	if fate == dieAfter {
		w.die()
		return nil, errDead
	}
	return nil, errLost
}

// next counts the request and returns its fate. The caller sends writes and reports when they are done.
func (w *wire) next(request *http.Request) (fate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return deliver, errDead
	}
	if !isWrite(request) {
		return deliver, nil
	}
	w.writes++
	if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/pods") {
		w.posts++
	}
	w.sent.Add(1)
	return w.decide(namespaceOf(request), w.writes), nil
}

// isWrite reports whether the request writes an object that the sets consist of.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && request.Method != http.MethodHead &&
		!strings.Contains(path, "/events") && !strings.Contains(path, "/apis/authorization.k8s.io/")
}

// namespaceOf returns the namespace of the object, empty if it has none.
func namespaceOf(request *http.Request) string {
	_, rest, _ := strings.Cut(request.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// die makes all further requests fail, and ends the process when the writes that were sent are
// executed. The timeout of requests bounds the wait.
func (w *wire) die() {
	w.mu.Lock()
	first := !w.dead
	w.dead = true
	w.mu.Unlock()
	if first {
		w.sent.Wait()
		close(w.died)
	}
}

func (w *wire) podPosts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.posts
}

// process runs the program with a wire until the context ends or the wire is cut. It returns the
// number of its writes.
func (w *world) process(ctx context.Context, config *rest.Config, line *wire) int {
	config = rest.CopyConfig(config)
	line.died = make(chan struct{})
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		line.base = base
		return line
	})
	running, err := program.New(config)
	if err != nil {
		w.Error(err)
		return 0
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-line.died:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := running.Run(ctx); err != nil && !errors.Is(err, errDead) {
		w.Log("run the program:", err)
	}
	line.mu.Lock()
	defer line.mu.Unlock()
	return line.writes
}

// run runs processes one after another until the test or the returned function ends it. Each process
// has a new wire with the fates.
func (w *world) run(decide func(namespace string, n int) fate) (stop func() (processes, writes int)) {
	w.Helper()
	config := w.Component(w, workloads.Name)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	processes, writes := 0, 0
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			processes++
			writes += w.process(ctx, config, &wire{decide: decide})
		}
	}()
	stop = func() (int, int) {
		cancel()
		<-done
		return processes, writes
	}
	w.Cleanup(func() { stop() })
	return stop
}

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
