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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull/controller"
	"github.com/seamark-dev/seamark/internal/workloads/nodejob"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
	"github.com/seamark-dev/seamark/test/crash"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

const (
	limit, total = 3, 4
	nodes        = 8
)

// world is two jobs, their pods and nodes.
type world struct {
	*crash.World
	stores     reconciler.Stores
	jobs       []client.Object
	controller *controller.Controller
	// restarts counts the processes that ended.
	restarts int
	// fails is whether pulls may fail.
	fails bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	w := &world{}
	for i := range 2 {
		job := &v1alpha1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", i), Name: "pull", UID: types.UID(fmt.Sprint("job-", i)), Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		}}
		job.Spec.Image, job.Spec.Parallelism = "game:1", new(intstr.FromInt32(limit))
		job.Spec.PullPolicy = &v1alpha1.ImagePullJobPullPolicy{TimeoutSeconds: new(int32(1000)), BackoffLimit: new(int32(1000))}
		w.jobs = append(w.jobs, job)
	}
	w.World = crash.New(t, seed, noon, w.jobs...)
	var all []*corev1.Node
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		all = append(all, trim.NodeWithImages(node))
	}
	w.stores = reconciler.Stores{Sets: w.Store(&v1alpha1.ImagePullJobList{}), Pods: w.Store(&corev1.PodList{}), Nodes: fakeapi.NewStore(t, nil, all)}
	w.restart()
	return w
}

// restart starts another process.
func (w *world) restart() {
	w.Helper()
	w.restarts++
	options, live := w.Options(w.stores)
	w.controller = controller.New(nodejob.Options{Options: options, Live: live}, controller.Limits{Allowed: labels.Everything(), PerNode: 2, Total: total})
}

// report lets the kubelet of a random pod pull, or fail.
func (w *world) report() {
	w.Helper()
	pods := crash.List[*corev1.Pod](w.World, &corev1.PodList{})
	if len(pods) == 0 {
		return
	}
	pod, status := pods[w.Random.IntN(len(pods))], corev1.ContainerStatus{Name: "pull", ImageID: "sha256:1"}
	if w.fails && w.Random.IntN(4) == 0 {
		status = corev1.ContainerStatus{Name: "pull", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	if err := w.API.Status().Update(w.Context(), pod); err != nil {
		w.Fatal(err)
	}
}

// reconcile reconciles a random job, and checks that no job has too many pods, nor the cluster, and that each namespace leaves
// one of the two places of a node to others.
func (w *world) reconcile() {
	w.Helper()
	w.Now = w.Now.Add(60 * time.Millisecond)
	w.Reconcile(w.controller, w.jobs[w.Random.IntN(len(w.jobs))])
	pods := crash.List[*corev1.Pod](w.World, &corev1.PodList{})
	if len(pods) > total {
		w.Fatalf("%d pods exist", len(pods))
	}
	perJob, perNode := map[string]int{}, map[string]int{}
	for _, pod := range pods {
		if perJob[pod.Namespace]++; perJob[pod.Namespace] > limit {
			w.Fatalf("the job in %s has %d pods", pod.Namespace, perJob[pod.Namespace])
		}
		if perNode[pod.Namespace+pod.Spec.NodeName]++; perNode[pod.Namespace+pod.Spec.NodeName] > 1 {
			w.Fatalf("node %s has two pods of %s", pod.Spec.NodeName, pod.Namespace)
		}
	}
}

// complete reports whether all jobs have ended.
func (w *world) complete() bool {
	return !slices.ContainsFunc(crash.List[*v1alpha1.ImagePullJob](w.World, &v1alpha1.ImagePullJobList{}), func(job *v1alpha1.ImagePullJob) bool {
		return job.Status.CompletionTime == nil
	})
}

// TestLimitsHoldAtAnyCrash loses writes and answers, delays the caches and ends the process between any two reconciles. No
// limit is exceeded, in the end each node has the image, and no node is asked again whose pull has not failed.
func TestLimitsHoldAtAnyCrash(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(t, seed)
		w.fails = seed%2 == 1
		for range 300 {
			switch w.Random.IntN(9) {
			case 0:
				if w.Random.IntN(4) == 0 {
					w.restart()
				}
			case 1, 2:
				w.report()
			case 3:
				w.Now = w.Now.Add(time.Duration(w.Random.IntN(8)) * time.Second)
			case 4:
				w.Fill()
			case 5:
				w.FillOne()
			default:
				w.reconcile()
			}
		}
		most := 1
		if w.fails {
			most += w.restarts
		}
		w.fails, w.Fate = false, func(string) crash.Fate { return crash.Done }
		for i := 0; i < 300 && !w.complete(); i++ {
			w.Fill()
			w.report()
			w.reconcile()
		}
		for _, job := range crash.List[*v1alpha1.ImagePullJob](w.World, &v1alpha1.ImagePullJobList{}) {
			if status := job.Status; status.Succeeded != nodes || status.CompletionTime == nil {
				t.Fatalf("seed %d: status %+v", seed, status)
			}
		}
		for name, times := range w.Created {
			if times > most {
				t.Errorf("seed %d: pod %s was created %d times, in %d processes", seed, name, times, w.restarts)
			}
		}
	}
}
