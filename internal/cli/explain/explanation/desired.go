// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package explanation

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// desired returns how many pods a workload of Kubernetes itself is to have at least, and the field that says it. It is not known if
// the controller has not handled the last change of a DaemonSet.
func desired(object metav1.Object) (count int, field string, known bool) {
	const replicas = "spec.replicas"
	switch o := object.(type) {
	case *appsv1.Deployment:
		return int(ptr.Deref(o.Spec.Replicas, 1)), replicas, true
	case *appsv1.ReplicaSet:
		return int(ptr.Deref(o.Spec.Replicas, 1)), replicas, true
	case *appsv1.StatefulSet:
		return int(ptr.Deref(o.Spec.Replicas, 1)), replicas, true
	case *appsv1.DaemonSet:
		return int(o.Status.DesiredNumberScheduled), "status.desiredNumberScheduled", o.Status.ObservedGeneration >= o.Generation
	}
	return 0, "", false
}

// refused returns why the controller could not create pods, as far as the status of the workload says it.
func refused(object metav1.Object) string {
	switch o := object.(type) {
	case *appsv1.Deployment:
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	case *appsv1.ReplicaSet:
		for _, c := range o.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

// running adds the step about the pods of a workload of Kubernetes itself: whether as many as it is to have exist, and are as they
// should be.
func (p *pods) running() {
	object := p.given.Object
	if job, ok := object.(*batchv1.Job); ok {
		p.job(job)
		return
	}
	want, field, known := desired(object)
	switch {
	case !known:
		p.late(podview.Edited(object), "Pods", "the controller has not handled the last change", p.following)
		return
	case want == 0 && len(p.pods) == 0:
		p.add(Step{Title: "Pods", Verdict: OK, Text: "there are none, because " + field + " is 0"})
		return
	}
	rest, failed := split(p.pods)
	missing := want - len(slices.DeleteFunc(slices.Clone(rest), planning.Terminating))
	if missing > 0 {
		rest, failed = p.pods, nil
	}
	step := p.unfinishedOf(rest, max(want, len(rest)), p.stateOf, "are available")
	step.Evidence = append(step.Evidence, failed.line()...)
	p.addMissing(step, missing)
}

// failedPods are the names of pods that a controller has replaced, or tries again.
type failedPods []string

func (f failedPods) line() []string {
	if len(f) == 0 {
		return nil
	}
	return []string{"pods that have failed: " + text.List(f, text.MaxNames)}
}

// split returns the pods that have not failed, and the names of the others.
func split(pods []*corev1.Pod) (rest []*corev1.Pod, failed failedPods) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed {
			failed = append(failed, pod.Name)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, failed
}

// addMissing adds the step about the pods that exist, given how many more are to be created. That they do not exist is a problem if
// the controller could not create them, or if the others are as they should be: a controller may wait for a pod before it creates the
// next one.
func (p *pods) addMissing(step Step, count int) {
	if count <= 0 {
		p.add(step)
		return
	}
	object := p.given.Object
	why, missing := refused(object), fmt.Sprintf("to be created: %d", count)
	if why != "" {
		step.Evidence = append([]string{text.Line(why)}, step.Evidence...)
	}
	switch {
	case len(p.pods) == 0:
		step.Text = "it has no pods"
	case step.Verdict == Problem:
		step.Evidence = append([]string{missing}, step.Evidence...)
	default:
		step.Text += "; " + missing
	}
	switch {
	case step.Verdict == Problem || step.Verdict == Waiting && why == "":
		p.add(step)
	case why != "":
		p.problem(step.Title, step.Text, p.following, step.Evidence...)
	default:
		p.late(podview.Edited(object), step.Title, step.Text, p.following, step.Evidence...)
	}
}

// job adds the step about the pods of a Job, which creates others for those that fail.
func (p *pods) job(job *batchv1.Job) {
	rest, failed := split(p.pods)
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			p.add(Step{Title: "Pods", Verdict: OK, Text: fmt.Sprintf("the job is complete: %d succeeded", job.Status.Succeeded), Evidence: failed.line()})
			return
		case c.Type == batchv1.JobFailed:
			p.problem("Pods", fmt.Sprintf("the job has failed (%s): %s", c.Reason, text.Line(c.Message)), p.following, failed.line()...)
			return
		}
	}
	succeeded := 0
	for _, pod := range rest {
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded++
		}
	}
	// Pods that have succeeded may have been deleted since.
	active := len(rest) - succeeded
	parallelism, ended := int(ptr.Deref(job.Spec.Parallelism, 1)), max(succeeded, int(job.Status.Succeeded))
	if why := idle(job); why != "" && active == 0 {
		p.add(Step{Title: "Pods", Verdict: OK, Text: "no pod runs, because " + why, Evidence: failed.line()})
		return
	}
	// Without spec.completions, no pod is created after the first one that succeeds.
	total, want := len(rest), parallelism
	switch {
	case job.Spec.Completions != nil:
		total = max(total, int(*job.Spec.Completions))
		want = min(parallelism, int(*job.Spec.Completions)-ended)
	case ended > 0:
		want = 0
	default:
		total = max(total, parallelism)
	}
	step := p.unfinishedOf(rest, total, p.jobPod, "have succeeded")
	step.Evidence = append(step.Evidence, failed.line()...)
	if step.Verdict == OK && (len(failed) > 0 || want <= active) {
		step.Verdict, step.Next = Waiting, p.following // The next pod is created after a while, or the status follows.
	}
	p.addMissing(step, want-active)
}

// idle returns why a Job runs no pods. It is empty if it is to run some.
func idle(job *batchv1.Job) string {
	switch {
	case ptr.Deref(job.Spec.Suspend, false):
		return "the job is suspended"
	case ptr.Deref(job.Spec.Parallelism, 1) == 0:
		return "spec.parallelism is 0"
	}
	return ""
}
