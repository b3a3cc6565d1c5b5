// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// FuzzUpdates plays revisions, crashes of the program between its writes, and a kubelet that acts at
// any time. Each byte is an action and its parameter. At the end, the pod runs the last revision.
// While the condition is True, the containers run what the spec says. With an odd first byte, container
// main changes only while container side is ready and has its image.
func FuzzUpdates(f *testing.F) {
	f.Add([]byte{0x10, 0x03, 0x20, 0x05, 0x00})
	f.Add([]byte{0x11, 0x21, 0x04, 0x12, 0x31, 0x05, 0x13, 0x02, 0x06})
	f.Add([]byte{0x91, 0x05, 0x81, 0x03, 0x07, 0x92, 0x06})
	f.Add([]byte{0x21, 0x20, 0x33, 0x05, 0x33, 0x05, 0x30, 0x31, 0x00, 0x33, 0x05})
	f.Fuzz(func(t *testing.T, actions []byte) {
		if len(actions) > 200 {
			return
		}
		ordered := len(actions) > 0 && actions[0]%2 == 1
		templates := make([]*corev1.PodTemplateSpec, 4)
		for i := range templates {
			templates[i] = template(fmt.Sprintf("main:%d", i))
			templates[i].Labels["tier"] = fmt.Sprint(i / 2)
			templates[i].Spec.Containers[0].Resources.Requests = list("cpu", fmt.Sprint(1+i%3))
			templates[i].Spec.Containers[1].Image = fmt.Sprintf("side:%d", i/2)
			if ordered {
				env := &templates[i].Spec.Containers[1].Env
				*env = append(*env, corev1.EnvVar{Name: pub.ContainerLaunchPriorityEnv, Value: "1"})
			}
		}
		n := newNode(pod(templates[0]))
		n.alias["main:3"] = "main:0"
		at, target := now, 0
		revision := func() int { // The revision of the pod, by its label.
			var i int
			if _, err := fmt.Sscanf(n.pod.Labels["controller-revision-hash"], "web-%d", &i); err != nil {
				return 0
			}
			return i
		}
		n.pod.Labels["controller-revision-hash"] = "web-0"
		write := func(patch *planning.PodPatch, writes int) {
			before := n.pod.DeepCopy()
			n.write(patch, writes)
			side := &n.pod.Spec.Containers[1]
			if ordered && !cmp.Equal(before.Spec.Containers[0], n.pod.Spec.Containers[0]) &&
				(n.runs[side.Name] != side.Image || !n.pod.Status.ContainerStatuses[1].Ready) {
				t.Fatalf("container main changes before container side runs %s: %v", side.Image, n.runs)
			}
		}
		step := func(writes int) {
			cached := trim.Pod(nil)(n.pod)
			if revision() != target {
				change, why := inplace.Between(templates[revision()], templates[target]).Decide(cached)
				if change == nil {
					t.Fatalf("Decide: %s", why)
				}
				name := fmt.Sprintf("web-%d", target)
				write(inplace.Start(cached, change, inplace.Target{
					Revision: name, Labels: map[string]string{"controller-revision-hash": name},
					Grace: time.Duration(target%2) * 3 * time.Second,
				}, at), writes)
				return
			}
			next := inplace.Next(cached, at)
			if next.Refused != "" {
				t.Fatal(next.Refused)
			}
			write(next.Patch, writes)
		}
		late := 0
		for i, action := range actions {
			at = at.Add(time.Second)
			if late--; late == 0 {
				n.sync(at)
			}
			parameter := int(action >> 4)
			switch action % 8 {
			case 0:
				target = parameter % len(templates)
			case 1, 2, 3:
				step(parameter % 4)
			case 4:
				n.observe()
			case 5:
				n.sync(at)
			case 6:
				if n.pod.Status.ObservedGeneration != n.pod.Generation {
					late = 4 // The old image runs again, but not for long.
				}
				n.crash(at)
			case 7:
				n.unpullable[fmt.Sprintf("%s:%d", []string{"main", "side"}[parameter/4%2], parameter%4)] = parameter < 8
			}
			ready := condition(n.pod, pub.InPlaceUpdateReady) == corev1.ConditionTrue
			if ready && inplace.Done(n.pod) && !n.current() && action%8 < 4 && !anyUnpullable(n) {
				t.Fatalf("action %d: the condition is True, but the containers run %v: %v %v", i, n.runs, n.pod.Annotations, n.pod.Status.ContainerStatuses)
			}
		}
		n.unpullable = map[string]bool{}
		for range 10 {
			at = at.Add(time.Minute)
			step(all)
			n.sync(at)
		}
		if revision() != target || inplace.InProgress(n.pod) || !n.current() || inplace.Next(n.pod, at).Patch != nil {
			t.Fatalf("target %d, pod of revision %d runs %v: %v", target, revision(), n.runs, n.pod.Annotations)
		}
		want := templates[target]
		for i := range want.Spec.Containers {
			got := &n.pod.Spec.Containers[i]
			if got.Image != want.Spec.Containers[i].Image || n.pod.Labels["tier"] != want.Labels["tier"] {
				t.Fatalf("target %d: image %s, labels %v", target, got.Image, n.pod.Labels)
			}
			if cpu := got.Resources.Requests["cpu"]; i == 0 && !cpu.Equal(want.Spec.Containers[0].Resources.Requests["cpu"]) {
				t.Fatalf("target %d: cpu %s", target, cpu.String())
			}
		}
	})
}

func anyUnpullable(n *node) bool {
	for _, yes := range n.unpullable {
		if yes {
			return true
		}
	}
	return false
}
