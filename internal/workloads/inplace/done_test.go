// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// Two tags can have the same image ID, and the runtime may report the old tag for both.
func TestTagsOfTheSameImage(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	n := newNode(pod(one))
	n.alias["main:2"] = "main:1"
	n.write(start(t, n, one, two, "web-b", 0, now), all)
	n.observe()
	if inplace.Done(n.pod) {
		t.Error("done before the container is replaced")
	}
	finish(t, n, now)
	if n.started != 1 {
		t.Errorf("%d containers started, want 1", n.started)
	}
}

// The kubelet replaces a container of the same image ID only once. A container that it started from the
// old image after the change does not live long after the kubelet has seen the change.
func TestTimeUntilTagOfTheSameImageIsUpdated(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PodStatus)
		want   time.Duration
	}{
		"started after the change": {func(*corev1.PodStatus) {}, 7 * time.Second},
		"started at the change": {func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now)
		}, 5 * time.Second},
		"started before the change": {func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now.Add(-time.Second))
		}, 30 * time.Second},
		"the clock of the node is ahead": {func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(now.Add(time.Hour))
		}, 30 * time.Second},
		"no observed generation": {func(s *corev1.PodStatus) { s.ObservedGeneration = 0 }, 30 * time.Second},
		"old generation":         {func(s *corev1.PodStatus) { s.ObservedGeneration-- }, 0},
		"the container waits": {func(s *corev1.PodStatus) {
			s.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := template("main:1"), template("main:2")
			n := newNode(pod(one))
			n.alias["main:2"] = "main:1"
			n.write(start(t, n, one, two, "web-b", 0, now), all)
			n.sync(now.Add(2 * time.Second))
			test.change(&n.pod.Status)
			if progress := inplace.Next(n.pod, now); progress.Patch != nil || progress.After != test.want {
				t.Errorf("got the patch %v after %s, want none before %s", progress.Patch, progress.After, test.want)
			}
			if progress := inplace.Next(n.pod, now.Add(test.want)); (progress.Patch != nil) != (test.want > 0) {
				t.Errorf("got the patch %v after %s", progress.Patch, test.want)
			}
		})
	}
}

// TestContainersThatStopSlowly updates to another name of the same image ID. The kubelet takes most of the termination grace
// period to stop the container, and the runtime reports the new name for it meanwhile: the pod is not ready before the
// container has restarted.
func TestContainersThatStopSlowly(t *testing.T) {
	for name, grace := range map[string]int64{"the default": 30, "ten minutes": 600} {
		t.Run(name, func(t *testing.T) {
			one, two := template("main:1"), template("main:2")
			one.Spec.TerminationGracePeriodSeconds, two.Spec.TerminationGracePeriodSeconds = &grace, &grace
			n := newNode(pod(one))
			n.alias["main:2"] = "main:1"
			n.write(start(t, n, one, two, "web-b", 0, now), all)
			n.observe()
			n.pod.Status.ContainerStatuses[0].Image = "main:2"
			stopped := now.Add(time.Duration(grace) * time.Second)
			for at := now; at.Before(stopped); at = at.Add(time.Second) {
				cached := trim.Pod(nil)(n.pod)
				if progress := inplace.Next(cached, at); progress.Patch != nil || inplace.Done(cached) {
					t.Fatalf("the update is done after %s, before the container has restarted", at.Sub(now))
				}
			}
			finish(t, n, stopped)
			if n.started != 1 {
				t.Errorf("%d containers started, want 1", n.started)
			}
		})
	}
}
