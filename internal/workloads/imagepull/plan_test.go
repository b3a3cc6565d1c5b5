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
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/imagepull"
)

type job = v1alpha1.ImagePullJob

func parallelism(value any) func(*job) {
	return func(j *job) { j.Spec.Parallelism = new(intstr.Parse(fmt.Sprint(value))) }
}

func policy(timeout, limit int32) func(*job) {
	return func(j *job) {
		j.Spec.PullPolicy = &v1alpha1.ImagePullJobPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &limit}
	}
}

func never(j *job) { j.Spec.CompletionPolicy.Type = v1alpha1.CompleteNever }

func always(j *job) { j.Spec.ImagePullPolicy = corev1.PullAlways }

// names selects nodes.
func names(list ...string) func(*job) {
	return func(j *job) { j.Spec.Selector = &v1alpha1.ImagePullJobNodeSelector{Names: list} }
}

func TestParallelism(t *testing.T) {
	for value, want := range map[any]int{1: 1, 3: 3, "30%": 2, "31%": 2, "100%": 5, 99: 5, 0: 0, "0%": 0} {
		w := newWorld(t, 5, parallelism(value))
		w.drain()
		if len(w.pods) != want {
			t.Errorf("parallelism %v: %d pods, want %d", value, len(w.pods), want)
		}
	}
}

func TestNodesInOrder(t *testing.T) {
	w := newWorld(t, 3)
	w.pull()
	if diff := cmp.Diff([]string{"n001", "n002", "n003"}, w.created); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	w.want("3 0 3 0")
	if w.job.Status.CompletionTime == nil || w.reason() != "True Completed" || w.job.Status.Cursor != "n003" || !slices.Contains(w.events, "Completed") {
		t.Errorf("status %+v, events %v", w.job.Status, w.events)
	}
}

func TestOutcomes(t *testing.T) {
	for report, want := range map[string]string{
		"sha256:1": "1 0 1 0", "CreateContainerError": "1 0 1 0", "RunContainerError": "1 0 1 0", "StartError": "1 0 1 0", "ContainerCannotRun": "1 0 1 0",
		"ErrImagePull": "1 0 0 1", "ImagePullBackOff": "1 0 0 1", "OutOfpods": "1 0 0 1", "InvalidImageName": "1 0 0 1", "ContainerCreating": "1 1 0 0",
	} {
		w := newWorld(t, 1, policy(60, 0))
		w.drain()
		w.reports("n001", report)
		w.drain()
		if w.want(want); strings.HasSuffix(want, "1") && !strings.Contains(w.job.Status.Message, "n001: "+report+": text") {
			t.Errorf("%s: message %q", report, w.job.Status.Message)
		}
	}
}

func TestAttempts(t *testing.T) {
	w := newWorld(t, 2, policy(60, 2))
	for attempt, wait := range []time.Duration{5 * time.Second, 10 * time.Second} {
		w.drain()
		w.reports("n001", "ErrImagePull")
		w.drain()
		w.pass(wait - time.Second)
		if len(w.created) != attempt+1 {
			t.Fatalf("pods on %v before the pause has passed", w.created)
		}
		w.reports("n001", "ContainerCreating") // The kubelet tries again.
		w.pass(time.Second)
	}
	w.want("2 1 0 0")
	w.pass(time.Minute) // The last attempt times out.
	w.want("2 1 0 1")
	if want := []string{"n001", "n001", "n001", "n002"}; !slices.Equal(w.created, want) || !strings.Contains(w.job.Status.Message, "pullPolicy.timeoutSeconds, 60") {
		t.Errorf("pods on %v, want %v; message %q", w.created, want, w.job.Status.Message)
	}
	w.reports("n002", "ErrImagePull")
	w.drain()
	w.reports("n002", "sha256:1") // The kubelet succeeds before the next attempt is due.
	w.drain()
	w.want("2 0 1 1")
	if diff := cmp.Diff([]string{"n001"}, w.job.Status.FailedNodes); diff != "" || w.reason() != "True NodesFailed" {
		t.Errorf("%s, failed nodes (-want +got):\n%s", w.reason(), diff)
	}
}

func TestInvalidNamesAreNotTriedAgain(t *testing.T) {
	w := newWorld(t, 1, policy(60, 9))
	w.drain()
	w.reports("n001", "InvalidImageName")
	w.drain()
	w.want("1 0 0 1")
}

func TestPodsThatSomebodyDeletes(t *testing.T) {
	w := newWorld(t, 1, policy(60, 1))
	for range 2 {
		w.drain()
		w.pods = nil
		w.drain()
		w.pass(5 * time.Second)
	}
	w.want("1 0 0 1")
	if len(w.created) != 2 {
		t.Errorf("%d pods, want 2", len(w.created))
	}
}

func TestNodesThatCannotPull(t *testing.T) {
	w := newWorld(t, 3)
	w.set("n001", corev1.NodeReady, corev1.ConditionUnknown)
	w.set("n002", corev1.NodeDiskPressure, corev1.ConditionTrue)
	w.pull()
	w.want("3 0 1 0")
	if w.reason() != "False Waiting" || !strings.Contains(w.job.Status.Message, "2 wait until they are ready") {
		t.Errorf("%s, %q", w.reason(), w.job.Status.Message)
	}
	w.now = w.now.Add(time.Hour)
	w.set("n001", corev1.NodeReady, corev1.ConditionTrue)
	w.set("n002", corev1.NodeDiskPressure, corev1.ConditionFalse)
	w.restart()
	w.pull()
	w.want("3 0 3 0")
	if diff := cmp.Diff([]string{"n003", "n001", "n002"}, w.created); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestANodeDiesDuringAPull(t *testing.T) {
	w := newWorld(t, 2, policy(600, 0))
	w.drain()
	w.set("n001", corev1.NodeReady, corev1.ConditionUnknown)
	w.drain()
	if w.pod("n001") != nil || w.pod("n002") == nil {
		t.Fatalf("pods on %v: the place must be that of the other node", w.created)
	}
	w.reports("n002", "sha256:1")
	w.drain()
	w.set("n001", corev1.NodeReady, corev1.ConditionTrue)
	w.pull()
	w.want("2 0 2 0")
}

func TestDiskPressureAfterAPull(t *testing.T) {
	w := newWorld(t, 1, policy(600, 9))
	w.drain()
	w.set("n001", corev1.NodeDiskPressure, corev1.ConditionTrue)
	w.drain()
	w.want("1 0 0 1")
	if !strings.Contains(w.job.Status.Message, "NodeDiskFull") {
		t.Errorf("message %q", w.job.Status.Message)
	}
}

func TestImagesThatNodesHave(t *testing.T) {
	for image, has := range map[string]string{
		"game:1": "docker.io/library/game:1", "game": "docker.io/library/game:latest", "r.example/a/game:2": "r.example/a/game:2",
		"game:1@sha256:0123": "docker.io/library/game@sha256:0123", "r.example:5000/game:1@sha256:01": "r.example:5000/game@sha256:01",
	} {
		w := newWorld(t, 0, func(j *job) { j.Spec.Image = image })
		w.join("a", "other:1", has)
		w.drain()
		w.want("1 0 1 0")
		if always(w.job); len(w.created) > 0 {
			t.Errorf("%s: a pod on a node that has %s", image, has)
		}
	}
	w := newWorld(t, 0, always)
	w.join("a", "docker.io/library/game:1")
	w.drain()
	w.want("1 1 0 0")
}

func TestSelection(t *testing.T) {
	expressions := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpExists}}}
	for want, edit := range map[string]func(*job){
		"a b c": func(*job) {},
		"c": func(j *job) {
			j.Spec.Selector = &v1alpha1.ImagePullJobNodeSelector{Names: []string{"c", "gone", "virtual"}}
		},
		"a b": func(j *job) { j.Spec.Selector = &v1alpha1.ImagePullJobNodeSelector{LabelSelector: expressions} },
		"":    func(j *job) { j.Spec.PodSelector = &v1alpha1.ImagePullJobPodSelector{LabelSelector: expressions} },
	} {
		w := newWorld(t, 0, edit, parallelism(9))
		for _, name := range []string{"c", "b", "a", "virtual", "deleted"} {
			node := w.join(name)
			node.Labels = map[string]string{"zone": "z"}
			switch name {
			case "c":
				node.Labels = nil
			case "virtual":
				node.Labels["type"] = "virtual-kubelet"
			case "deleted":
				node.DeletionTimestamp = new(metav1.NewTime(noon))
			}
		}
		w.drain()
		if got := strings.Join(w.created, " "); got != want {
			t.Errorf("nodes %q, want %q", got, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	w := newWorld(t, 3, func(j *job) {
		j.Spec.CompletionPolicy = v1alpha1.ImagePullJobCompletionPolicy{ActiveDeadlineSeconds: new(int64(60)), TTLSecondsAfterFinished: new(int32(30))}
	})
	w.drain()
	w.reports("n001", "sha256:1")
	w.drain()
	if w.plan.Next != noon.Add(time.Minute) {
		t.Errorf("next plan at %v", w.plan.Next)
	}
	w.pass(time.Minute)
	w.want("3 0 1 2")
	if w.reason() != "True DeadlineExceeded" || len(w.pods) > 0 || w.removed || w.plan.Next != w.now.Add(30*time.Second) {
		t.Errorf("%s, %d pods, next plan at %v", w.reason(), len(w.pods), w.plan.Next)
	}
	w.pass(30 * time.Second)
	if !w.removed {
		t.Error("the job is not deleted after its time")
	}
}

func TestJobsThatDoNotEnd(t *testing.T) {
	w := newWorld(t, 2, never)
	w.pull()
	w.want("2 0 2 0")
	if w.job.Status.CompletionTime != nil || w.reason() != "True Completed" {
		t.Errorf("%s, ended %v", w.reason(), w.job.Status.CompletionTime)
	}
	w.now = w.now.Add(time.Hour)
	w.join("n000") // Before the cursor.
	w.restart()
	w.pull()
	w.want("3 0 3 0")
	w.pass(48 * time.Hour)
	if want := []string{"n001", "n002", "n000"}; !slices.Equal(w.created, want) {
		t.Errorf("nodes %v, want %v", w.created, want)
	}
}

func TestAJobPullsAgainEveryDay(t *testing.T) {
	w := newWorld(t, 2, never, always)
	w.pull()
	if w.plan.Next != noon.Add(24*time.Hour) {
		t.Errorf("next plan at %v", w.plan.Next)
	}
	w.pass(24*time.Hour - time.Second)
	w.want("2 0 2 0")
	w.restart()
	w.now = w.now.Add(time.Second)
	w.pull()
	if want := []string{"n001", "n002", "n001", "n002"}; !slices.Equal(w.created, want) {
		t.Errorf("nodes %v, want %v", w.created, want)
	}
}

func TestChangesTakeEffect(t *testing.T) {
	w := newWorld(t, 4, parallelism(0), policy(600, 0))
	w.drain()
	if w.reason() != "False Paused" || len(w.pods) > 0 {
		t.Errorf("%s, %d pods", w.reason(), len(w.pods))
	}
	parallelism(2)(w.job)
	w.drain()
	parallelism(1)(w.job)
	w.reports("n001", "sha256:1")
	w.drain()
	if len(w.pods) != 1 {
		t.Errorf("%d pods after parallelism was lowered to 1", len(w.pods))
	}
	policy(10, 0)(w.job)
	w.pass(10 * time.Second)
	if w.want("4 1 1 1"); w.pod("n003") == nil {
		t.Errorf("pods on %v: the timeout must take effect", w.created)
	}
}

func TestFailedNodesAreBounded(t *testing.T) {
	w := newWorld(t, 150, parallelism(150), policy(600, 0), never)
	w.drain()
	for _, pod := range slices.Clone(w.pods) {
		w.reports(pod.Spec.NodeName, "ErrImagePull")
	}
	w.drain()
	w.want("150 0 0 150")
	if got := w.job.Status.FailedNodes; len(got) != 100 || got[99] != "n100" || len(w.events) > 20 {
		t.Errorf("%d failed nodes, %d events", len(got), len(w.events))
	}
	before := w.job.Status
	w.restart()
	w.now = w.now.Add(time.Minute)
	w.drain()
	if diff := cmp.Diff(before, w.job.Status); diff != "" {
		t.Errorf("status after a restart (-before +after):\n%s", diff)
	}
}

func TestPod(t *testing.T) {
	w := newWorld(t, 0, func(j *job) {
		j.Name, j.Spec.PullSecrets = strings.Repeat("a", 62)+"."+strings.Repeat("b", 100), []string{"registry"}
		j.Annotations = map[string]string{v1alpha1.ServiceAccountKey: "puller"}
	})
	pod := imagepull.Pod(w.job, "n", 1)
	if pod.Labels[v1alpha1.ImagePullJobKey] != strings.Repeat("a", 62) || len(pod.Labels) != 1 {
		t.Errorf("labels %v", pod.Labels)
	}
	if pod.Spec.ServiceAccountName != "puller" || pod.Spec.ImagePullSecrets[0].Name != "registry" || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("specification %+v", pod.Spec)
	}
	if requests := pod.Spec.Containers[0].Resources.Requests; len(requests) != 2 || !requests.Cpu().IsZero() || !requests.Memory().IsZero() {
		t.Errorf("requests %v, want zero, which defaults do not replace", requests)
	}
	if diff := cmp.Diff([]string{"/dev/null/pull"}, pod.Spec.Containers[0].Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	names := map[string]bool{}
	for _, node := range []string{"n", "m"} {
		for attempt := range int32(3) {
			names[imagepull.Name("u", node, attempt)] = true
			names[imagepull.Name("v", node, attempt)] = true
		}
	}
	if len(names) != 12 {
		t.Errorf("%d names, want 12", len(names))
	}
}

// TestOrderOfTheSelector asks the nodes in the order of the selector, also after the process has ended.
func TestOrderOfTheSelector(t *testing.T) {
	w := newWorld(t, 4, parallelism(1), names("n004", "n001", "n003"))
	w.drain()
	w.reports("n004", "sha256:1")
	w.drain()
	if w.job.Status.Cursor != "n004" {
		t.Fatalf("cursor %s, want n004", w.job.Status.Cursor)
	}
	w.restart()
	w.pull()
	w.want("3 0 3 0")
	if want := []string{"n004", "n001", "n003"}; !slices.Equal(w.created, want) {
		t.Errorf("nodes %v, want %v", w.created, want)
	}
}

// TestNodesBeforeTheCursor ends the process while a node before the cursor pulls, and its pod is gone before another one
// takes over.
func TestNodesBeforeTheCursor(t *testing.T) {
	w := newWorld(t, 4, parallelism(2))
	w.drain()
	for _, node := range []string{"n002", "n003"} {
		w.reports(node, "sha256:1")
		w.drain()
	}
	if diff := cmp.Diff([]string{"n001"}, w.job.Status.Pulling); diff != "" || w.job.Status.Cursor != "n003" {
		t.Fatalf("cursor %s, pulling (-want +got):\n%s", w.job.Status.Cursor, diff)
	}
	w.pods = nil
	w.restart()
	w.pull()
	w.want("4 0 4 0")
	if want := []string{"n001", "n002", "n003", "n004", "n001", "n004"}; !slices.Equal(w.created, want) {
		t.Errorf("nodes %v, want %v", w.created, want)
	}
}
