// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

// TestContainersInService updates images with a grace period, which a pod that stays in service does not have.
func TestContainersInService(t *testing.T) {
	const key = pub.InServiceContainersKey
	one := template("main:1")
	one.Spec.Containers = append(one.Spec.Containers, corev1.Container{Name: "last", Image: "last:1"})
	for name, test := range map[string]struct {
		pod, wanted      string
		main, side, last string
		down             bool
	}{
		"no annotation":                           {main: "1", side: "2", last: "1", down: true},
		"the container is named":                  {pod: "side", wanted: "side", main: "1", side: "2", last: "1"},
		"two are named":                           {pod: "side, last", wanted: "side, last", main: "1", side: "2", last: "2"},
		"one of them is not":                      {pod: "side", wanted: "side", main: "1", side: "2", last: "2", down: true},
		"another one is named":                    {pod: "sideways,last", wanted: "sideways,last", main: "1", side: "2", last: "1", down: true},
		"the update adds the annotation":          {wanted: "side", main: "1", side: "2", last: "1"},
		"the update removes it":                   {pod: "side", main: "1", side: "2", last: "1", down: true},
		"the update changes the important one":    {pod: "side", wanted: "side", main: "2", side: "1", last: "1", down: true},
		"the update changes nothing that is run":  {pod: "side", wanted: "side", main: "1", side: "1", last: "1"},
		"the update changes all, and all may run": {pod: "main,side,last", wanted: "main,side,last", main: "2", side: "2", last: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := one.DeepCopy(), images(one, test.main, test.side, test.last)
			from.Annotations, to.Annotations = map[string]string{}, map[string]string{}
			n := newNode(pod(from))
			if test.pod != "" {
				from.Annotations[key], n.pod.Annotations[key] = test.pod, test.pod
			}
			if test.wanted != "" {
				to.Annotations[key] = test.wanted
			}
			patch := start(t, n, from, to, "web-b", time.Minute, now)
			n.write(patch, all)
			if down := condition(n.pod, pub.InPlaceUpdateReady) == "False"; down != test.down {
				t.Errorf("the pod is out of service: %t, want %t", down, test.down)
			}
			if waits := n.pod.Annotations[pub.InPlaceUpdateGraceKey] != ""; waits != test.down {
				t.Errorf("the update waits for the grace period: %t, want %t", waits, test.down)
			}
			finish(t, n, now.Add(time.Minute))
		})
	}
}

// TestUpdatesInServiceAreSeenWithoutTheState removes the state of the pod, which is a label, during an update that changes
// one container after the other.
func TestUpdatesInServiceAreSeenWithoutTheState(t *testing.T) {
	one := prioritized("5", "10", "7")
	n := newNode(pod(one))
	n.pod.Annotations[pub.InServiceContainersKey] = "main,side,last"
	one.Annotations = map[string]string{pub.InServiceContainersKey: "main,side,last"}
	n.write(start(t, n, one, images(one, "2", "2", "2"), "web-b", 0, now), all)
	delete(n.pod.Labels, pub.LifecycleStateKey)
	if inplace.Idle(n.pod) || !inplace.InProgress(n.pod) {
		t.Error("the pod counts as updated after the first of three containers has changed")
	}
	finish(t, n, now)
}
