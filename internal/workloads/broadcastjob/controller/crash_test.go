// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob/controller"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/test/crash"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

// world is a job, its nodes and pods.
type world struct {
	*crash.World
	job        *v1alpha1.BroadcastJob
	nodes      fakeapi.Store
	stores     reconciler.Stores
	controller *controller.Controller
	// ended is whether the job has ended.
	ended bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	job := &v1alpha1.BroadcastJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "report", UID: "uid", Generation: 1},
		Spec: v1alpha1.BroadcastJobSpec{
			Parallelism:   new(intstr.FromInt(1 + int(seed%2))),
			FailurePolicy: v1alpha1.BroadcastJobFailurePolicy{Type: v1alpha1.BroadcastJobFailFast},
			Template:      corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "report:1"}}}},
		},
	}
	if seed%2 == 0 {
		job.Spec.FailurePolicy.Type = v1alpha1.BroadcastJobContinue
	}
	w := &world{World: crash.New(t, seed, time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), job), job: job, nodes: fakeapi.NewStore[any](t, nil, nil)}
	for range 4 {
		w.join()
	}
	w.stores = reconciler.Stores{Sets: w.Store(&v1alpha1.BroadcastJobList{}), Pods: w.Store(&corev1.PodList{}), Nodes: w.nodes}
	w.restart()
	return w
}

// join adds a node, which is the first one to get a pod.
func (w *world) join() {
	w.Helper()
	if n := 99 - len(w.nodes.List()); n > 75 {
		expect.NoError(w, w.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", n)}}))
	}
}

// restart starts another process.
func (w *world) restart() {
	w.Helper()
	options, live := w.Options(w.stores)
	w.controller = controller.New(nodejob.Options{Options: options, Live: live})
}

// pods returns those that have not ended.
func (w *world) pods() []*corev1.Pod {
	w.Helper()
	return slices.DeleteFunc(crash.List[*corev1.Pod](w.World, &corev1.PodList{}), planning.Finished)
}

// progress ends a random pod that runs.
func (w *world) progress(phase corev1.PodPhase) {
	w.Helper()
	pods := w.pods()
	if len(pods) == 0 {
		return
	}
	pod := pods[w.Random.IntN(len(pods))]
	pod.Status.Phase = phase
	expect.NoError(w, w.API.Status().Update(w.Context(), pod))
}

// reconcile reconciles the job, and checks that parallelism was not exceeded, and that it stays ended.
func (w *world) reconcile() {
	w.Helper()
	w.Now = w.Now.Add(200 * time.Millisecond)
	w.Reconcile(w.controller, w.job)
	if running, most := len(w.pods()), w.job.Spec.Parallelism.IntValue(); running > most {
		w.Fatalf("%d pods run, at most %d may", running, most)
	}
	w.job = crash.List[*v1alpha1.BroadcastJob](w.World, &v1alpha1.BroadcastJobList{})[0]
	switch ended := broadcastjob.Ended(w.job); {
	case w.ended && !ended:
		w.Fatalf("the job goes on after its end: %+v", w.job.Status)
	case ended && !w.ended:
		w.ended = true
		w.join()
		w.reconcile() // Before the cache has the end.
	}
}

// TestNoNodeRunsTwice loses writes and answers, delays caches, and ends the process between any two reconciles.
func TestNoNodeRunsTwice(t *testing.T) {
	for seed := range uint64(12) {
		w := newWorld(t, seed)
		random := w.Fate
		w.Fate = func(verb string) crash.Fate {
			fate := random(verb)
			if verb == "create" && fate == crash.Unanswered {
				w.join() // The next plan begins with another node.
			}
			return fate
		}
		for step := range 150 {
			switch w.Random.IntN(10) {
			case 0:
				if w.Random.IntN(2) == 0 {
					w.restart()
				}
			case 1:
				w.progress(corev1.PodSucceeded)
			case 2:
				w.join()
			case 3, 4, 5:
				w.FillOne()
			default:
				if seed%4 == 3 && step > 60 {
					w.progress(corev1.PodFailed)
				}
				w.reconcile()
			}
		}
		w.Fate = func(string) crash.Fate { return crash.Done }
		for range 60 {
			w.Fill()
			w.progress(corev1.PodSucceeded)
			w.reconcile()
		}
		for name, times := range w.Created {
			if times > 1 {
				t.Errorf("seed %d: pod %s was created %d times", seed, name, times)
			}
		}
		if s := &w.job.Status; !w.ended || s.Phase == v1alpha1.BroadcastJobCompleted && int(s.Desired) != len(w.Created) {
			t.Errorf("seed %d: %d pods, status %+v", seed, len(w.Created), s)
		}
	}
}
