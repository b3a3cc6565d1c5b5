// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package broadcastjobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads"
	"github.com/seamark-dev/seamark/internal/workloads/broadcastjob"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/integration/env"
	"github.com/seamark-dev/seamark/test/openkruise"
)

func noExecute() corev1.Taint { return corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoExecute} }

// TestBroadcastJobs runs jobs with one program.
func TestBroadcastJobs(t *testing.T) {
	start(t)
	for name, test := range map[string]func(*testing.T){
		"each node once": func(t *testing.T) {
			w := newWorld(t, "a", "b", "c")
			w.ReadyNode("d", noExecute())
			w.create(nil)
			w.is(v1alpha1.BroadcastJobCompleted, "3 0 3 0")
			condition := w.has(v1alpha1.BroadcastJobComplete, metav1.ConditionTrue, "Completed")
			if pods, most := w.ranOn(); pods != "map[a:1 b:1 c:1]" || most > 3 || condition.Message != "3 of 3 nodes succeeded." || w.job.Status.CompletionTime == nil {
				t.Errorf("pods %s, most %d, status %+v", pods, most, w.job.Status)
			}
			pods := &corev1.PodList{}
			w.List(pods, client.MatchingLabels{"app": "report", "broadcastjob-name": "report"})
			if len(pods.Items) != 3 {
				t.Errorf("%d pods have the labels", len(pods.Items))
			}
		},
		"nodes join and leave": testNodes,
		"Pause":                testPause,
		"restartLimit":         testRestarts,
		"deadline":             testDeadline,
		"time to live": func(t *testing.T) {
			w := newWorld(t, "a")
			w.create(func(s *v1alpha1.BroadcastJobSpec) { s.CompletionPolicy.TTLSecondsAfterFinished = new(int32(1)) })
			w.Gone(w.job)
		},
		"quota": testQuota,
		"a name of others": func(t *testing.T) {
			w := newWorld(t, "a", "b")
			other := &corev1.Pod{
				ObjectMeta: w.Meta(broadcastjob.Name("report", w.NodeName("a"))),
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other:1"}}},
			}
			w.Create(other)
			w.create(func(s *v1alpha1.BroadcastJobSpec) {
				s.Parallelism, s.FailurePolicy.Type = number(1), v1alpha1.BroadcastJobContinue
			})
			w.is(v1alpha1.BroadcastJobRunning, "2 0 1 0")
			w.has(v1alpha1.BroadcastJobPodsCreated, metav1.ConditionFalse, "Refused")
			w.Delete(other, client.GracePeriodSeconds(0))
			w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
			w.has(v1alpha1.BroadcastJobPodsCreated, metav1.ConditionTrue, "Created")
		},
		"AdvancedCronJob": testSchedule,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// gone waits until no pod runs.
func (w *world) gone() {
	w.Helper()
	w.until("no pod runs", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, pod := range w.pods {
			if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
}

// testDeadline ends a job whose deadline has passed. A pod that a guard protects runs on until its label changes.
func testDeadline(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.becomes = all(corev1.PodRunning)
	w.Create(builders.Guard(w.Namespace, "busy", false, "yes"))
	w.create(nil)
	w.is(v1alpha1.BroadcastJobRunning, "2 2 0 0")
	busy := &corev1.Pod{ObjectMeta: w.Meta(broadcastjob.Name("report", w.NodeName("a")))}
	w.Patch(busy, `{"metadata":{"labels":{%q:"yes"}}}`, builders.GuardLabel)
	w.edit(func(s *v1alpha1.BroadcastJobSpec) { s.CompletionPolicy.ActiveDeadlineSeconds = new(int64(2)) })
	w.has(v1alpha1.BroadcastJobFailed, metav1.ConditionTrue, "DeadlineExceeded")
	w.has(planning.PodsGuarded, metav1.ConditionTrue, "Guarded")
	w.until("only the guarded pod runs", func() error {
		pods := &corev1.PodList{}
		w.List(pods)
		return await.ErrorIf(len(pods.Items) != 1 || pods.Items[0].Name != busy.Name || pods.Items[0].DeletionTimestamp != nil, "pods %v", pods.Items)
	})
	w.Patch(busy, `{"metadata":{"labels":{%q:null}}}`, builders.GuardLabel)
	w.gone()
	w.is(v1alpha1.BroadcastJobHasFailed, "2 0 0 2")
}

// testNodes lets nodes join and leave a job that does not end.
func testNodes(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.becomes = func(node string) corev1.PodPhase {
		if node == "b" {
			return corev1.PodRunning
		}
		return corev1.PodSucceeded
	}
	w.create(func(s *v1alpha1.BroadcastJobSpec) { s.CompletionPolicy.Type = v1alpha1.BroadcastJobNever })
	w.is(v1alpha1.BroadcastJobRunning, "2 1 1 0")
	w.ReadyNode("c")
	w.is(v1alpha1.BroadcastJobRunning, "3 1 2 0")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.NodeName("b")}}
	w.Patch(node, `{"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}`)
	w.is(v1alpha1.BroadcastJobRunning, "2 0 2 0")
	w.Delete(node)
	w.let(all(corev1.PodSucceeded))
	w.ReadyNode("b")
	w.is(v1alpha1.BroadcastJobRunning, "3 0 3 0")
	if pods, _ := w.ranOn(); pods != "map[a:1 b:2 c:1]" {
		t.Errorf("pods %s", pods)
	}
}

// testPause deletes the failed pod, after which its node and the others go on.
func testPause(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.becomes = all(corev1.PodFailed)
	w.create(func(s *v1alpha1.BroadcastJobSpec) {
		s.Parallelism, s.FailurePolicy.Type = number(1), v1alpha1.BroadcastJobPause
	})
	w.is(v1alpha1.BroadcastJobPaused, "2 0 0 1")
	w.has(v1alpha1.BroadcastJobComplete, metav1.ConditionFalse, "PodFailed")
	w.let(all(corev1.PodSucceeded))
	expect.NoError(t, server.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.Namespace)))
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
	if pods, most := w.ranOn(); pods != "map[a:2 b:1]" || most > 1 {
		t.Errorf("pods %s, most %d", pods, most)
	}
}

// testRestarts checks that a pod that restarts too often is stopped, and remains.
func testRestarts(t *testing.T) {
	w := newWorld(t, "a")
	w.becomes = all(corev1.PodRunning)
	w.create(func(s *v1alpha1.BroadcastJobSpec) {
		s.FailurePolicy = v1alpha1.BroadcastJobFailurePolicy{Type: v1alpha1.BroadcastJobContinue, RestartLimit: 1}
	})
	w.is(v1alpha1.BroadcastJobRunning, "1 1 0 0")
	w.let(all(""))
	pod := &corev1.Pod{}
	key := types.NamespacedName{Namespace: w.Namespace, Name: broadcastjob.Name("report", w.NodeName("a"))}
	for restarts := range int32(3) {
		expect.NoError(t, server.Client.Get(t.Context(), key, pod))
		if pod.Spec.ActiveDeadlineSeconds != nil {
			t.Errorf("the pod has a deadline after %d restarts", restarts-1)
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "report:1", ImageID: "x", RestartCount: restarts}}
		w.UpdateStatus(pod)
	}
	w.is(v1alpha1.BroadcastJobCompleted, "1 0 0 1")
	w.until("the pod is stopped", func() error {
		if err := server.Client.Get(t.Context(), key, pod); err != nil || pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds != 1 {
			return fmt.Errorf("deadline %v: %w", pod.Spec.ActiveDeadlineSeconds, err)
		}
		return nil
	})
}

// testQuota refuses all pods, and then permits one at a time.
func testQuota(t *testing.T) {
	w := newWorld(t, "a", "b")
	quota := w.Quota("pods", "count/pods", "0")
	w.create(nil)
	condition := w.has(v1alpha1.BroadcastJobPodsCreated, metav1.ConditionFalse, "Refused")
	if !strings.Contains(condition.Message, "exceeded quota: pods") {
		t.Errorf("condition %+v", condition)
	}
	w.is(v1alpha1.BroadcastJobRunning, "2 0 0 0")
	w.Delete(quota)
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
	w.has(v1alpha1.BroadcastJobPodsCreated, metav1.ConditionTrue, "Created")
}

// testSchedule creates BroadcastJobs by a schedule.
func testSchedule(t *testing.T) {
	w := newWorld(t, "a", "b")
	spec, err := json.Marshal(w.spec())
	expect.NoError(t, err)
	object := &v1alpha1.AdvancedCronJob{
		ObjectMeta: w.Meta("nightly"),
		Spec: v1alpha1.AdvancedCronJobSpec{
			Schedule: "@every 1s", ConcurrencyPolicy: v1alpha1.ForbidConcurrent, SuccessfulJobsHistoryLimit: new(int32(1)),
			Template: v1alpha1.CronJobTemplate{
				BroadcastJobTemplate: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"metadata": {"labels": {"app": "nightly"}}, "spec": %s}`, spec)},
			},
		},
	}
	w.let(all(corev1.PodRunning))
	w.CreateFor(object)
	w.Shows(object, "a BroadcastJob is active", func() error {
		s := &object.Status
		return await.ErrorIf(len(s.Active) != 1 || s.Active[0].Kind != "BroadcastJob" || s.Type != "BroadcastJob", "status %+v", s)
	})
	jobs := &v1alpha1.BroadcastJobList{}
	w.List(jobs, client.MatchingLabels{"app": "nightly"})
	if len(jobs.Items) != 1 || jobs.Items[0].Annotations[v1alpha1.ScheduledAtKey] == "" {
		t.Fatalf("jobs %+v", jobs.Items)
	}
	w.job = &jobs.Items[0]
	first := w.job.Name
	w.let(all(corev1.PodSucceeded))
	w.Shows(object, "the history is trimmed", func() error {
		w.List(jobs)
		kept := slices.ContainsFunc(jobs.Items, func(job v1alpha1.BroadcastJob) bool { return job.Name == first })
		return await.ErrorIf(len(jobs.Items) == 0 || len(jobs.Items) > 2 || kept, "%d jobs, the first is kept: %t", len(jobs.Items), kept)
	})
	if object.Status.LastSuccessfulTime == nil {
		t.Errorf("status %+v", object.Status)
	}
}

// TestRestart restarts the program in the middle of a job.
func TestRestart(t *testing.T) {
	stop := start(t)
	w := newWorld(t, "a", "b", "c", "d")
	w.becomes = func(node string) corev1.PodPhase {
		if node == "a" {
			return corev1.PodSucceeded
		}
		return corev1.PodRunning
	}
	w.create(func(s *v1alpha1.BroadcastJobSpec) {
		s.Parallelism, s.FailurePolicy.Type = number(2), v1alpha1.BroadcastJobContinue
	})
	w.is(v1alpha1.BroadcastJobRunning, "4 2 1 0")
	stop()
	w.let(all(corev1.PodSucceeded))
	start(t)
	w.is(v1alpha1.BroadcastJobCompleted, "4 0 4 0")
	if pods, most := w.ranOn(); pods != "map[a:1 b:1 c:1 d:1]" || most > 2 {
		t.Errorf("pods %s, most %d", pods, most)
	}
}

// TestOnlyBroadcastJobsOfSchedulesAreCreated uses the account of the program.
func TestOnlyBroadcastJobsOfSchedulesAreCreated(t *testing.T) {
	start(t)
	account := server.ClientOf(t, server.ServiceAccount(t, env.SystemNamespace, workloads.Name, nil))
	owner := metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "AdvancedCronJob", Name: "report", UID: "1", Controller: new(true)}
	for name, change := range map[string]func(*v1alpha1.BroadcastJob){
		"no owner":     func(job *v1alpha1.BroadcastJob) { job.OwnerReferences = nil },
		"another kind": func(job *v1alpha1.BroadcastJob) { job.OwnerReferences[0].Kind = "BroadcastJob" },
		"another name": func(job *v1alpha1.BroadcastJob) { job.Name = "other-1" },
		"kube-system":  func(job *v1alpha1.BroadcastJob) { job.Namespace = metav1.NamespaceSystem },
	} {
		job := &v1alpha1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report-1", OwnerReferences: []metav1.OwnerReference{owner}}}
		job.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "a:1"}}}
		expect.NoError(t, account.Create(t.Context(), job.DeepCopy(), client.DryRunAll))
		change(job)
		env.Refused(
			t, name, "seamark-workloads cannot write Job", func(ctx context.Context) error { return account.Create(ctx, job.DeepCopy(), client.DryRunAll) },
		)
	}
}

// TestTakeOver starts the program with jobs, schedules and pods that OpenKruise has stored: it writes no pod and no Job,
// and each status stays as it is. Then the jobs that have not ended go on.
func TestTakeOver(t *testing.T) {
	w := newWorld(t, "0", "1")
	w.becomes = all("")
	jobs := openkruise.Restore(t, server.Client, w.Namespace, "BroadcastJob")
	schedules := openkruise.Restore(t, server.Client, w.Namespace, "AdvancedCronJob")
	written := func() map[string]string {
		return openkruise.Versions(t, server.Client, w.Namespace, corev1.SchemeGroupVersion.WithKind("Pod"), batchv1.SchemeGroupVersion.WithKind("Job"))
	}
	before := written()
	start(t)
	for _, object := range slices.Concat(jobs, schedules) {
		now := object.DeepCopy()
		w.Shows(now, object.GetName()+" is processed", func() error {
			observed, _, _ := unstructured.NestedInt64(now.Object, "status", "observedGeneration")
			return await.ErrorIf(observed == 0, "not yet")
		})
	}
	expect.Equal(t, "objects written by the take-over", before, written())
	for _, object := range slices.Concat(jobs, schedules) {
		expect.Success(t, openkruise.Changed(t, server.Client, object))
	}
	w.let(all(corev1.PodSucceeded))
	w.job = &v1alpha1.BroadcastJob{ObjectMeta: w.Meta("running")}
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
	w.job.Name = "paused"
	w.is(v1alpha1.BroadcastJobPaused, "2 0 1 0")
	w.edit(func(s *v1alpha1.BroadcastJobSpec) { s.Paused = false })
	w.is(v1alpha1.BroadcastJobCompleted, "2 0 2 0")
}
