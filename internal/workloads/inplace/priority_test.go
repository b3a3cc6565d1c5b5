// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// prioritized is a template with three containers and their launch priorities, none if empty.
func prioritized(main, side, last string) *corev1.PodTemplateSpec {
	t := template("main:1")
	t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "last", Image: "last:1"})
	for i, value := range []string{main, side, last} {
		if value != "" {
			env := &t.Spec.Containers[i].Env
			*env = append(*env, corev1.EnvVar{Name: pub.ContainerLaunchPriorityEnv, Value: value})
		}
	}
	return t
}

// images returns the template with other tags of its images.
func images(t *corev1.PodTemplateSpec, main, side, last string) *corev1.PodTemplateSpec {
	t = t.DeepCopy()
	for i, tag := range []string{main, side, last} {
		if i < len(t.Spec.Containers) {
			t.Spec.Containers[i].Image = t.Spec.Containers[i].Name + ":" + tag
		}
	}
	return t
}

// barrier writes the priority as OpenKruise's webhook does.
func barrier(p *corev1.Pod, i int, key string) {
	env := &p.Spec.Containers[i].Env
	*env = append(*env, corev1.EnvVar{Name: pub.ContainerLaunchBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: p.Name + "-barrier"}, Key: key,
		},
	}})
}

func state(t *testing.T, p *corev1.Pod) pub.InPlaceUpdateState {
	t.Helper()
	var s pub.InPlaceUpdateState
	if err := json.Unmarshal([]byte(p.Annotations[pub.InPlaceUpdateStateKey]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// changed returns the names of the containers that the patch changes.
func changed(patch *planning.PodPatch) string {
	if patch == nil {
		return ""
	}
	names := slices.Collect(maps.Keys(patch.Images))
	for name := range patch.Resources {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func TestOrderOfBatches(t *testing.T) {
	for name, test := range map[string]struct {
		main, side, last string
		pod              func(*corev1.Pod)
		want             []string
	}{
		"no priorities":           {want: []string{"last,main,side"}},
		"the same priority":       {main: "1", side: "1", last: "1", want: []string{"last,main,side"}},
		"one variable":            {side: "1", want: []string{"side", "last,main"}},
		"negative":                {main: "-1", want: []string{"last,side", "main"}},
		"three":                   {main: "5", side: "10", last: "7", want: []string{"side", "last", "main"}},
		"no integer counts as 0":  {main: "high", side: "1", last: "99999999999999999999", want: []string{"side", "last,main"}},
		"a pod without a node":    {side: "1", pod: func(p *corev1.Pod) { p.Spec.NodeName = "" }, want: []string{"last,main,side"}},
		"an annotation":           {pod: func(p *corev1.Pod) { p.Annotations[pub.ContainerLaunchPriorityKey] = "Ordered" }, want: []string{"main", "side", "last"}},
		"annotation and variable": {last: "9", pod: func(p *corev1.Pod) { p.Annotations[pub.ContainerLaunchPriorityKey] = "Ordered" }, want: []string{"main", "side", "last"}},
		"another annotation":      {last: "9", pod: func(p *corev1.Pod) { p.Annotations[pub.ContainerLaunchPriorityKey] = "x" }, want: []string{"last", "main,side"}},
		"OpenKruise's webhook": {
			side: "9", // The pod keeps the priorities that it was created with.
			pod:  func(p *corev1.Pod) { barrier(p, 0, "p_2"); barrier(p, 1, "p_-3"); barrier(p, 2, "p_0") },
			want: []string{"main", "last", "side"},
		},
		"a container that was added after OpenKruise's webhook": {
			pod:  func(p *corev1.Pod) { barrier(p, 0, "p_2"); barrier(p, 1, "p_1") },
			want: []string{"last,main", "side"},
		},
		"a variable of another program": {
			side: "1",
			pod: func(p *corev1.Pod) {
				barrier(p, 0, "x")
				p.Spec.Containers[2].Env = []corev1.EnvVar{{Name: pub.ContainerLaunchBarrierEnv, Value: "p_5"}}
			},
			want: []string{"side", "last,main"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := prioritized(test.main, test.side, test.last)
			n := newNode(pod(one))
			if test.pod != nil {
				test.pod(n.pod)
			}
			at := now
			patch := start(t, n, one, images(one, "2", "2", "2"), "web-b", 0, at)
			for i, want := range test.want {
				if got := changed(patch); got != want {
					t.Errorf("batch %d: %q, want %q", i, got, want)
				}
				n.write(patch, all)
				if inplace.Done(n.pod) {
					t.Fatalf("batch %d: the update is done", i)
				}
				at = at.Add(time.Minute)
				n.sync(at)
				patch = inplace.Next(n.pod, at).Patch
			}
			finish(t, n, at)
		})
	}
}

func TestStateOfBatches(t *testing.T) {
	one := prioritized("", "1", "")
	n := newNode(pod(one))
	patch := start(t, n, one, images(one, "2", "2", "1"), "web-b", 0, now)
	want := `{"revision":"web-b","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"side":` +
		`{"imageID":"id-side:1","containerID":"c1-side","image":"side:1"}},"updateImages":true,` +
		`"nextContainerImages":{"main":"main:2"},"preCheckBeforeNext":{"containersRequiredReady":["side"]},` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["side"]}]}`
	if diff := cmp.Diff(want, *patch.Annotations[pub.InPlaceUpdateStateKey]); diff != "" {
		t.Errorf("first batch (-want +got):\n%s", diff)
	}
	n.write(patch, all)
	for name, test := range map[string]func(*corev1.ContainerStatus){
		"the old container":   func(s *corev1.ContainerStatus) { *s = *pod(one).Status.ContainerStatuses[1].DeepCopy() },
		"not ready":           func(s *corev1.ContainerStatus) { s.Ready = false },
		"a status is missing": func(s *corev1.ContainerStatus) { s.Name = "x" },
	} {
		n.sync(now)
		before := n.pod.Status.ContainerStatuses[1]
		test(&n.pod.Status.ContainerStatuses[1])
		if progress := inplace.Next(n.pod, now.Add(time.Hour)); progress.Patch != nil {
			t.Errorf("%s: got %v, want to wait for container side", name, progress.Patch)
		}
		if !inplace.InProgress(n.pod) || condition(n.pod, pub.InPlaceUpdateReady) != corev1.ConditionFalse {
			t.Errorf("%s: the update is not in progress", name)
		}
		n.pod.Status.ContainerStatuses[1] = before
	}
	at := now.Add(10 * time.Second)
	patch = inplace.Next(n.pod, at).Patch
	want = `{"revision":"web-b","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"main":` +
		`{"imageID":"id-main:1","containerID":"c1-main","image":"main:1"}},"updateImages":true,` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["side"]},` +
		`{"timestamp":"2026-11-21T12:00:10Z","containers":["main"]}]}`
	if diff := cmp.Diff(want, *patch.Annotations[pub.InPlaceUpdateStateKey]); diff != "" || changed(patch) != "main" {
		t.Errorf("second batch %q (-want +got):\n%s", changed(patch), diff)
	}
	n.write(patch, all)
	finish(t, n, at)
}

// A newer revision or a rollback replaces the update between its batches. It does not start a container
// while one with a higher priority is being started.
func TestNewerRevisionBetweenBatches(t *testing.T) {
	one := prioritized("1", "2", "0")
	two := images(one, "2", "2", "2")
	for name, test := range map[string]struct {
		to      *corev1.PodTemplateSpec
		between func(*node)
		want    []string
	}{
		"rollback of the first batch": {one, func(*node) {}, []string{"side"}},
		"rollback of the second batch": {
			one, func(n *node) {
				n.sync(now)
				n.write(inplace.Next(n.pod, now).Patch, all)
			}, []string{"side", "main"},
		},
		"rollback while an image of the second batch cannot be pulled": {
			one, func(n *node) {
				n.sync(now)
				n.write(inplace.Next(n.pod, now).Patch, all)
				n.unpullable["main:2"] = true
				n.sync(now)
			}, []string{"side", "main"},
		},
		"rollback to another name of the image": {
			one, func(n *node) {
				n.sync(now)
				n.write(inplace.Next(n.pod, now).Patch, all)
				n.alias["side:1"], n.unpullable["main:2"] = "side:2", true
				n.sync(now)
			}, []string{"side", "", "main"},
		},
		"rollback while an image of the first batch cannot be pulled": {
			one, func(n *node) { n.unpullable["side:2"] = true; n.sync(now) }, []string{"side"},
		},
		"other images for all":                      {images(one, "3", "3", "3"), func(*node) {}, []string{"side", "main", "last"}},
		"another image for what has not changed":    {images(one, "3", "2", "2"), func(n *node) { n.sync(now) }, []string{"main", "last"}},
		"another image while side is being started": {images(one, "3", "2", "2"), func(*node) {}, []string{"", "main", "last"}},
		"the old image for what has not changed":    {images(one, "1", "2", "2"), func(n *node) { n.sync(now) }, []string{"last"}},
	} {
		for _, grace := range []time.Duration{0, 5 * time.Second} {
			t.Run(name+" with grace period "+grace.String(), func(t *testing.T) {
				n := newNode(pod(one))
				n.write(start(t, n, one, two, "web-b", 0, now), all)
				test.between(n)
				at := now.Add(time.Minute)
				patch := start(t, n, two, test.to, "web-c", grace, at)
				if grace > 0 {
					n.write(patch, all)
					at = at.Add(2 * grace)
					patch = inplace.Next(n.pod, at).Patch
				}
				for i, want := range test.want {
					if got := changed(patch); got != want {
						t.Fatalf("batch %d: %q, want %q", i, got, want)
					}
					n.write(patch, all)
					at = at.Add(time.Minute)
					n.sync(at)
					patch = inplace.Next(n.pod, at).Patch
				}
				finish(t, n, at)
				for i := range test.to.Spec.Containers {
					if c := &test.to.Spec.Containers[i]; n.runs[c.Name] != c.Image {
						t.Errorf("container %s runs %s, want %s", c.Name, n.runs[c.Name], c.Image)
					}
				}
			})
		}
	}
}

// The status shows the old container, which has the image again, but the kubelet may be replacing it.
func TestNextBatchWaitsForTheKubelet(t *testing.T) {
	one := prioritized("", "1", "")
	two, three := images(one, "1", "2", "1"), images(one, "3", "1", "1")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 0, now), all)
	n.write(start(t, n, two, three, "web-c", 0, now), all)
	if progress := inplace.Next(n.pod, now); progress.Patch != nil {
		t.Errorf("got %v before the kubelet has seen the first batch", progress.Patch)
	}
	n.observe()
	patch := inplace.Next(n.pod, now).Patch
	if changed(patch) != "main" {
		t.Errorf("got %v, want the image of main", patch)
	}
	n.write(patch, all)
	finish(t, n, now)
}
