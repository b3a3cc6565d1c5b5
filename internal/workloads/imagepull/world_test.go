// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// noon is when the job is created.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// world is a job with nodes, pods and a clock.
type world struct {
	testing.TB
	job      *v1alpha1.ImagePullJob
	nodes    []*corev1.Node
	pods     []*corev1.Pod
	progress *imagepull.Progress
	now      time.Time
	uid      int
	// created are the nodes of the pods in the order of their creation, and events the reasons of all events.
	created, events []string
	removed         bool
	plan            imagepull.Plan
}

func newWorld(tb testing.TB, nodes int, edits ...func(*v1alpha1.ImagePullJob)) *world {
	tb.Helper()
	w := &world{TB: tb, now: noon, job: &v1alpha1.ImagePullJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pull", UID: "job", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
		Spec:       v1alpha1.ImagePullJobSpec{Image: "game:1", ImagePullPolicy: corev1.PullIfNotPresent},
	}}
	for _, edit := range edits {
		edit(w.job)
	}
	for i := range nodes {
		w.join(fmt.Sprintf("n%03d", i+1))
	}
	return w
}

// join adds a ready node, which has been so for an hour at noon.
func (w *world) join(name string, images ...string) *corev1.Node {
	w.uid++
	at := metav1.NewTime(noon.Add(-time.Hour))
	if w.now.After(noon) {
		at = metav1.NewTime(w.now)
	}
	node := trim.NodeWithImages(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint("node-", w.uid)), CreationTimestamp: at},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: at},
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, LastTransitionTime: at},
			},
			Images: []corev1.ContainerImage{{Names: images}},
		},
	})
	w.nodes = append(w.nodes, node)
	return node
}

func (w *world) node(name string) *corev1.Node {
	for _, node := range w.nodes {
		if node.Name == name {
			return node
		}
	}
	return nil
}

// set sets a condition of a node.
func (w *world) set(name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	for i := range w.node(name).Status.Conditions {
		if each := &w.node(name).Status.Conditions[i]; each.Type == kind && each.Status != status {
			each.Status, each.LastTransitionTime = status, metav1.NewTime(w.now)
		}
	}
}

// pod returns the pod on a node.
func (w *world) pod(node string) *corev1.Pod {
	for _, pod := range w.pods {
		if pod.Spec.NodeName == node {
			return pod
		}
	}
	return nil
}

// reports is what the kubelet of a node reports: a reason to wait, or an image ID that begins with sha256.
func (w *world) reports(node, what string) {
	w.Helper()
	pod := w.pod(node)
	if pod == nil {
		w.Fatalf("node %s has no pod", node)
	}
	status := corev1.ContainerStatus{Name: "pull", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: what, Message: "text"}}}
	switch {
	case strings.HasPrefix(what, "sha256"):
		status = corev1.ContainerStatus{Name: "pull", ImageID: what}
	case strings.HasPrefix(what, "OutOf"):
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: what, Message: "text"}
		return
	case what == "ContainerCannotRun" || what == "StartError":
		status = corev1.ContainerStatus{Name: "pull", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: what}}}
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
}

// restart starts a process that expects nothing.
func (w *world) restart() { w.progress = nil }

// targets returns the nodes of the job.
func (w *world) targets() []*corev1.Node {
	w.Helper()
	nodes, err := imagepull.Nodes(w.job, labels.Everything(), w.nodes, nil)
	if err != nil {
		w.Fatal(err)
	}
	return nodes
}

// step carries out a plan, with at most limit new pods. It reports whether it had something to do.
func (w *world) step(limit int) bool {
	w.Helper()
	nodes := w.targets()
	if w.progress == nil {
		w.progress = imagepull.Restore(w.job, nodes)
	}
	w.plan = imagepull.New(imagepull.Input{Job: w.job, Nodes: nodes, Pods: w.pods, Progress: w.progress, Now: w.now})
	changed := cmp.Diff(w.job.Status, w.plan.Status) != "" || len(w.plan.Deletes) > 0
	w.job.Status = w.plan.Status
	for _, gone := range w.plan.Deletes {
		w.pods = slices.DeleteFunc(w.pods, func(pod *corev1.Pod) bool { return pod.UID == gone.Pod.UID })
	}
	for _, start := range w.plan.Start[:min(len(w.plan.Start), w.plan.Limit, limit)] {
		w.create(start)
		changed = true
	}
	for _, event := range slices.Concat(w.plan.Events, w.plan.StatusEvents) {
		w.events = append(w.events, event.Reason)
	}
	w.removed = w.removed || w.plan.Remove
	return changed
}

func (w *world) create(start imagepull.Start) {
	w.Helper()
	pod := imagepull.Pod(w.job, start.Node, start.Attempt)
	if slices.ContainsFunc(w.pods, func(other *corev1.Pod) bool { return other.Name == pod.Name }) {
		w.Fatalf("pod of node %s, attempt %d exists", start.Node, start.Attempt)
	}
	w.uid++
	pod.UID, pod.CreationTimestamp = types.UID(fmt.Sprint("pod-", w.uid)), metav1.NewTime(w.now)
	w.pods = append(w.pods, pod)
	w.created = append(w.created, start.Node)
	w.progress.Created(start.Node)
}

// drain carries out plans until nothing is left to do, and checks that the last one does nothing.
func (w *world) drain() {
	w.Helper()
	for range 1000 {
		if !w.step(1 << 20) {
			return
		}
	}
	w.Fatalf("plans do not end: %+v", w.plan)
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	w.drain()
}

// pull lets all pods succeed until the job has none.
func (w *world) pull() {
	w.Helper()
	w.drain()
	for len(w.pods) > 0 {
		for _, pod := range slices.Clone(w.pods) {
			w.reports(pod.Spec.NodeName, "sha256:1")
		}
		w.drain()
	}
}

// want compares the numbers of the status: desired, active, succeeded, failed.
func (w *world) want(text string) {
	w.Helper()
	s := w.job.Status
	if got := fmt.Sprintf("%d %d %d %d", s.Desired, s.Active, s.Succeeded, s.Failed); got != text {
		w.Errorf("desired, active, succeeded, failed: %s, want %s (%s)", got, text, s.Message)
	}
}

// reason returns the reason of the condition Complete.
func (w *world) reason() string {
	for _, each := range w.job.Status.Conditions {
		if each.Type == v1alpha1.ImagePullJobComplete {
			return fmt.Sprint(each.Status, " ", each.Reason)
		}
	}
	return ""
}
