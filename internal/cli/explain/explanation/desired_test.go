// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/explain/explanation"
	"github.com/seamark-dev/seamark/test/expect"
)

// podIn returns a pod in a phase. One that runs is ready.
func podIn(name string, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(name), Status: corev1.PodStatus{Phase: phase}}
	if phase == corev1.PodRunning {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(60e9)}}
	}
	return pod
}

// jobWith returns a Job with a condition, or none.
func jobWith(condition batchv1.JobConditionType, spec batchv1.JobSpec) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metaOf("worker"), Spec: spec}
	if condition != "" {
		job.Status.Succeeded = 3
		job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "too many"}}
	}
	return job
}

// TestDesiredPods compares the pods of workloads with the number that they are to have.
func TestDesiredPods(t *testing.T) {
	runs, other := podIn("a", corev1.PodRunning), podIn("b", corev1.PodRunning)
	starts, failed, done := podIn("c", corev1.PodPending), podIn("d", corev1.PodFailed), podIn("e", corev1.PodSucceeded)
	deployment := func(replicas int32, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metaOf("worker"), Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{Conditions: conditions},
		}
	}
	young := deployment(3)
	young.CreationTimestamp = ago(5e9)
	quota := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}
	nodes := func(count int32, observed int64) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metaOf("worker"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: count, ObservedGeneration: observed}}
	}
	three := batchv1.JobSpec{Completions: new(int32(3)), Parallelism: new(int32(2))}
	replicas := &appsv1.ReplicaSet{ObjectMeta: metaOf("worker"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(3))}}
	ordered := &appsv1.StatefulSet{ObjectMeta: metaOf("worker"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}
	const twoMissing = "Pods: 1 of 3 are available; to be created: 2"
	for name, test := range map[string]struct {
		object metav1.Object
		pods   []*corev1.Pod
		want   []string
	}{
		"all": {deployment(2), []*corev1.Pod{runs, other}, []string{"ok Pods: 2 of 2 are available"}},
		"a pod was evicted": {deployment(2), []*corev1.Pod{runs, other, failed}, []string{
			"ok Pods: 2 of 2 are available", "  pods that have failed: d",
		}},
		"a quota": {deployment(3, quota), []*corev1.Pod{runs}, []string{"problem " + twoMissing, "  exceeded quota"}},
		"a quota, and a pod that starts": {
			deployment(3, quota), []*corev1.Pod{starts},
			[]string{"problem Pods: 0 of 3 are available; to be created: 2", "  exceeded quota", "  pod c: waits for the scheduler"},
		},
		"created just now": {young, []*corev1.Pod{runs}, []string{"waiting " + twoMissing}},
		"no pods":          {deployment(3, quota), nil, []string{"problem Pods: it has no pods", "  exceeded quota"}},
		"no replicas":      {deployment(0), nil, []string{"ok Pods: there are none, because spec.replicas is 0"}},
		"a ReplicaSet":     {replicas, []*corev1.Pod{runs}, []string{"problem " + twoMissing}},
		"an ordered StatefulSet": {ordered, []*corev1.Pod{starts}, []string{
			"waiting Pods: 0 of 3 are available; to be created: 2", "  pod c: waits for the scheduler",
		}},
		"a node has no pod": {nodes(2, 1), []*corev1.Pod{runs}, []string{"problem Pods: 1 of 2 are available; to be created: 1"}},
		"no node matches":   {nodes(0, 1), nil, []string{"ok Pods: there are none, because status.desiredNumberScheduled is 0"}},
		"no controller":     {nodes(0, 0), nil, []string{"problem Pods: the controller has not handled the last change"}},
		"a complete Job": {jobWith(batchv1.JobComplete, three), []*corev1.Pod{failed, done}, []string{
			"ok Pods: the job is complete: 3 succeeded", "  pods that have failed: d",
		}},
		"a Job that has failed": {jobWith(batchv1.JobFailed, three), []*corev1.Pod{failed}, []string{
			"problem Pods: the job has failed (BackoffLimitExceeded): too many", "  pods that have failed: d",
		}},
		"a suspended Job": {jobWith("", batchv1.JobSpec{Suspend: new(true)}), nil, []string{
			"ok Pods: no pod runs, because the job is suspended",
		}},
		"a Job without pods": {jobWith("", three), nil, []string{"problem Pods: it has no pods"}},
		"a Job in steps": {jobWith("", three), []*corev1.Pod{done, runs, other}, []string{
			"waiting Pods: 1 of 3 have succeeded", "  pod a: runs", "  pod b: runs",
		}},
		"a Job that lacks a pod": {jobWith("", three), []*corev1.Pod{done, runs}, []string{
			"waiting Pods: 1 of 3 have succeeded; to be created: 1", "  pod a: runs",
		}},
		"a Job between two tries": {jobWith("", batchv1.JobSpec{Completions: new(int32(1))}), []*corev1.Pod{failed}, []string{
			"waiting Pods: 0 of 1 have succeeded; to be created: 1", "  pods that have failed: d",
		}},
		"a Job of a queue": {jobWith("", batchv1.JobSpec{Parallelism: new(int32(2))}), []*corev1.Pod{done, runs}, []string{
			"waiting Pods: 1 of 2 have succeeded", "  pod a: runs",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := explanation.Pods(explanation.PodsInput{Resource: "deployment.apps/worker", Object: test.object, Pods: test.pods, Now: now()})
			steps := slices.DeleteFunc(x.Steps, func(s explanation.Step) bool { return s.Title != "Pods" })
			expect.Equal(t, "steps", test.want, lines(steps))
		})
	}
}
