// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjob_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/nodefit"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// world is a job, its nodes and its pods. Plans are carried out as a whole or in part.
type world struct {
	*testing.T
	random *rand.Rand
	job    *v1alpha1.BroadcastJob
	nodes  map[string]*corev1.Node
	pods   map[string]*corev1.Pod
	left   int
	now    time.Time
	// created counts the pods of each node, and lost those that were deleted: each justifies another one.
	created, lost map[string]int
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, random: rand.New(rand.NewPCG(seed, 8)), job: newJob(), now: noon(),
		nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, created: map[string]int{}, lost: map[string]int{},
	}
	w.job.Status = v1alpha1.BroadcastJobStatus{}
	spec := &w.job.Spec
	spec.FailurePolicy.Type = pick(w, v1alpha1.BroadcastJobFailFast, v1alpha1.BroadcastJobContinue, v1alpha1.BroadcastJobPause)
	spec.FailurePolicy.RestartLimit = int32(w.random.IntN(3))
	spec.Parallelism = pick(w, nil, new(intstr.FromInt32(1)), new(intstr.FromInt32(3)), new(intstr.FromString("40%")))
	if w.random.IntN(4) == 0 {
		spec.CompletionPolicy.Type = v1alpha1.BroadcastJobNever
	} else if w.random.IntN(3) == 0 {
		spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(300))
	}
	return w
}

func pick[T any](w *world, values ...T) T { return values[w.random.IntN(len(values))] }

// some returns a value of the map, and false if there is none.
func some[T any](w *world, all map[string]T) (value T, found bool) {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	if len(names) == 0 {
		return value, false
	}
	slices.Sort(names)
	return all[names[w.random.IntN(len(names))]], true
}

func (w *world) input() broadcastjob.Input {
	in := broadcastjob.Input{Job: w.job, Left: w.left, Now: w.now}
	for _, node := range w.nodes {
		in.Nodes = append(in.Nodes, node)
	}
	for _, pod := range w.pods {
		in.Pods = append(in.Pods, pod)
	}
	return in
}

// running returns the number of pods that have not ended and may still start.
func (w *world) running() (n int) {
	for _, pod := range w.pods {
		if !planning.Finished(pod) && (!unstarted(pod) || pod.DeletionTimestamp == nil || !w.unready(pod)) {
			n++
		}
	}
	return n
}

func unstarted(pod *corev1.Pod) bool { return pod.Status.Phase == "" }

// unready reports whether the node of a pod exists and is not ready: its kubelet does nothing.
func (w *world) unready(pod *corev1.Pod) bool {
	node := w.nodes[nodefit.Target(pod)]
	return node != nil && !planning.NodeHas(node, corev1.NodeReady)
}

// reconcile carries out a plan, and checks the laws. If it is whole, the next plan does nothing.
func (w *world) reconcile(whole bool) {
	w.Helper()
	plan := broadcastjob.New(w.input())
	before := w.running()
	for _, each := range plan.Patches {
		each.Pod.Spec.ActiveDeadlineSeconds = new(int64(1))
	}
	for _, each := range plan.Deletes {
		each.Pod.DeletionTimestamp = new(metav1.NewTime(w.now))
	}
	w.left = 0
	for _, pod := range plan.Creates {
		if !whole && w.random.IntN(3) == 0 {
			w.left++
			continue
		}
		if w.pods[pod.Name] != nil {
			w.Fatalf("pod %s is created, and exists", pod.Name)
		}
		w.pods[pod.Name] = pod.DeepCopy()
		node := nodefit.Target(pod)
		if w.created[node]++; w.created[node]-1 > w.lost[node] {
			w.Fatalf("node %s runs a second pod", node)
		}
	}
	desired := int(plan.Status.Desired)
	if most := broadcastjob.Parallelism(w.job, desired); len(plan.Creates) > 0 && w.running() > max(before, most) {
		w.Fatalf("%d pods run, at most %d may", w.running(), most)
	}
	if len(plan.Creates) > 0 && broadcastjob.Ended(w.job) {
		w.Fatal("pods are created although the job has ended")
	}
	s := &plan.Status
	if s.Active+s.Succeeded+s.Failed > s.Desired {
		w.Fatalf("status %+v", s)
	}
	w.job.Status = *plan.Status.DeepCopy()
	if !whole {
		return
	}
	if slices.ContainsFunc(plan.Deletes, func(each planning.PodDelete) bool { return each.Reason == "NodeNotReady" }) {
		w.reconcile(true) // Their places are free.
		return
	}
	again := broadcastjob.New(w.input())
	if !again.Empty() {
		w.Fatalf("the plan of its own result is %s", summary(&again))
	}
	w.job.Status = *again.Status.DeepCopy()
	if third := broadcastjob.New(w.input()); !cmp.Equal(again.Status, third.Status) {
		w.Fatalf("the status changes:\n%s", cmp.Diff(again.Status, third.Status))
	}
}

// live lets something happen to the cluster.
func (w *world) live() {
	w.now = w.now.Add(time.Duration(w.random.IntN(5)) * time.Second)
	name := fmt.Sprintf("n%02d", w.random.IntN(12))
	node := w.nodes[name]
	switch w.random.IntN(9) {
	case 8:
		if node != nil {
			w.toggle(node)
		}
		w.now = w.now.Add(time.Duration(w.random.IntN(60)) * time.Second)
	case 0:
		if node == nil {
			w.nodes[name] = newNode(name)
		}
	case 1:
		if node != nil && w.random.IntN(8) == 0 {
			delete(w.nodes, name)
		}
	case 2:
		if node != nil {
			node.Spec.Taints = pick(w, nil, nil, []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}})
		}
	case 3:
		w.job.Spec.Paused = w.random.IntN(3) == 0
	default:
		if pod, found := some(w, w.pods); found {
			w.progress(pod)
		}
	}
}

// toggle lets a node be not ready, or return.
func (w *world) toggle(node *corev1.Node) {
	if planning.NodeHas(node, corev1.NodeReady) {
		notReady(node, pick(w, corev1.ConditionUnknown, corev1.ConditionFalse), w.now)
		return
	}
	*node = *newNode(node.Name)
}

// progress lets the scheduler, the kubelet or a user do something to a pod.
func (w *world) progress(pod *corev1.Pod) {
	target := nodefit.Target(pod)
	switch {
	case w.unready(pod) && pod.Spec.NodeName != "":
	case pod.DeletionTimestamp != nil:
		w.lost[target]++
		delete(w.pods, pod.Name)
	case planning.Finished(pod):
		if w.random.IntN(10) == 0 {
			pod.DeletionTimestamp = new(metav1.NewTime(w.now)) // A user runs the node again.
		}
	case pod.Spec.ActiveDeadlineSeconds != nil:
		pod.Status.Phase = corev1.PodFailed
	case pod.Spec.NodeName == "":
		pod.Spec.NodeName = target
	case unstarted(pod):
		pod.Status.Phase = corev1.PodRunning
	default:
		switch w.random.IntN(8) {
		case 0:
			pod.Status.Phase = corev1.PodFailed
		case 1, 2:
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: pod.Status.ContainerStatuses[0].RestartCount + 1}}
		case 3:
			pod.DeletionTimestamp = new(metav1.NewTime(w.now))
		default:
			pod.Status.Phase = corev1.PodSucceeded
		}
	}
}

// drain lets all pods end that have started or whose nodes are ready, until nothing happens any more. Five minutes pass.
func (w *world) drain() {
	w.job.Spec.Paused = false
	w.reconcile(true)
	w.now = w.now.Add(broadcastjob.Patience)
	for range 60 {
		for _, pod := range w.pods {
			switch {
			case w.unready(pod) && unstarted(pod):
			case pod.DeletionTimestamp != nil && w.unready(pod):
				w.lost[nodefit.Target(pod)]++ // A user forces it.
				delete(w.pods, pod.Name)
			case pod.DeletionTimestamp != nil:
				w.progress(pod)
			case pod.Spec.ActiveDeadlineSeconds != nil:
				pod.Status.Phase = corev1.PodFailed
			case !planning.Finished(pod):
				pod.Status.Phase = corev1.PodSucceeded
			}
		}
		w.reconcile(true)
	}
}

// unstarted checks that the nodes of a job that has ended start nothing when they return.
func (w *world) unstarted() {
	w.Helper()
	for _, pod := range w.pods {
		if broadcastjob.Ended(w.job) && unstarted(pod) && pod.DeletionTimestamp == nil {
			w.Fatalf("pod %s starts when its node returns", pod.Name)
		}
	}
}

// TestModel checks the laws: no node runs twice, unless its pod was deleted; parallelism is never exceeded; the plan of its
// own result is empty; and each node that fits ends, or the job says why not.
func TestModel(t *testing.T) {
	phases := map[v1alpha1.BroadcastJobPhase]int{}
	for seed := range uint64(400) {
		w := newWorld(t, seed)
		for range 120 {
			w.live()
			for _, pod := range w.pods {
				if len(pod.Status.ContainerStatuses) == 0 {
					pod.Status.ContainerStatuses = []corev1.ContainerStatus{{}}
				}
			}
			if w.random.IntN(2) == 0 {
				w.reconcile(w.random.IntN(2) == 0)
			}
		}
		w.drain()
		w.unstarted()
		s := &w.job.Status
		phases[s.Phase]++
		never := w.job.Spec.CompletionPolicy.Type == v1alpha1.BroadcastJobNever
		switch s.Phase {
		case v1alpha1.BroadcastJobCompleted:
			if never || s.Succeeded+s.Failed != s.Desired {
				t.Fatalf("seed %d: completed with %+v", seed, s)
			}
		case v1alpha1.BroadcastJobHasFailed:
			if w.running() > 0 {
				t.Fatalf("seed %d: %d pods of a failed job run", seed, w.running())
			}
		case v1alpha1.BroadcastJobPaused:
			if s.Failed == 0 || w.job.Spec.FailurePolicy.Type != v1alpha1.BroadcastJobPause {
				t.Fatalf("seed %d: paused with %+v", seed, s)
			}
		default:
			if !never && s.Desired > 0 || s.Succeeded+s.Failed != s.Desired {
				t.Fatalf("seed %d: running with %+v", seed, s)
			}
		}
	}
	if len(phases) != 4 {
		t.Errorf("phases %v: the model does not reach all", phases)
	}
}
