// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

const all = 3 // The number of writes of a patch.

func start(t *testing.T, n *node, from, to *corev1.PodTemplateSpec, revision string, grace time.Duration, at time.Time) *planning.PodPatch {
	t.Helper()
	cached := trim.Pod(nil)(n.pod)
	change, why := inplace.Between(from, to).Decide(cached)
	if change == nil {
		t.Fatalf("Decide: %s", why)
	}
	return inplace.Start(cached, change, inplace.Target{
		Revision: revision, Labels: map[string]string{"controller-revision-hash": revision}, Grace: grace,
	}, at)
}

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	if c := planning.Condition(p, kind); c != nil {
		return c.Status
	}
	return ""
}

// finish runs steps until nothing is to be done.
func finish(t *testing.T, n *node, at time.Time) {
	t.Helper()
	for i := range 8 {
		at = at.Add(time.Minute)
		n.sync(at)
		progress := inplace.Next(trim.Pod(nil)(n.pod), at)
		if progress.Refused != "" {
			t.Fatal(progress.Refused)
		}
		if progress.Patch == nil && progress.After == 0 && inplace.Done(n.pod) {
			n.ready()
			if inplace.InProgress(n.pod) || !n.current() || condition(n.pod, corev1.PodReady) != corev1.ConditionTrue {
				t.Fatalf("step %d: nothing to do, but the pod is not updated: %v", i, n.runs)
			}
			return
		}
		n.write(progress.Patch, all)
	}
	t.Fatal("the update does not end")
}

func TestImageUpdateStepByStep(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	n := newNode(pod(one))
	patch := start(t, n, one, two, "web-b", 0, now)
	want := map[string]string{"main": "main:2"}
	if diff := cmp.Diff(want, patch.Images); diff != "" {
		t.Errorf("Images (-want +got):\n%s", diff)
	}
	state := `{"revision":"web-b","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":{"main":` +
		`{"imageID":"id-main:1","containerID":"c1-main","image":"main:1"}},"updateImages":true,` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-21T12:00:00Z","containers":["main"]}]}`
	if diff := cmp.Diff(state, *patch.Annotations[pub.InPlaceUpdateStateKey]); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	n.write(patch, all)
	if condition(n.pod, pub.InPlaceUpdateReady) != "False" || condition(n.pod, corev1.PodReady) != "False" {
		t.Error("the pod is ready while its image changes")
	}
	if n.pod.Labels["controller-revision-hash"] != "web-b" || !inplace.InProgress(n.pod) {
		t.Error("the update is not in progress")
	}
	for _, moment := range []func(){func() {}, n.observe} {
		moment()
		if progress := inplace.Next(n.pod, now); progress.Patch != nil || inplace.Done(n.pod) {
			t.Errorf("the update is done before the container is replaced: %v", progress.Patch)
		}
	}
	finish(t, n, now)
	if progress := inplace.Next(n.pod, now); progress.Patch != nil {
		t.Errorf("a write after the update: %v", progress.Patch)
	}
}

func TestGracePeriod(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	two.Labels["tier"] = "gold"
	n := newNode(pod(one))
	at := now.Add(300 * time.Millisecond)
	patch := start(t, n, one, two, "web-b", 5*time.Second, at)
	if len(patch.Images) > 0 || patch.Labels["tier"] != nil {
		t.Errorf("the pod changes before the grace period: %v", patch)
	}
	n.write(patch, all)
	if condition(n.pod, pub.InPlaceUpdateReady) != "False" || inplace.Done(n.pod) {
		t.Error("the pod is ready in the grace period")
	}
	progress := inplace.Next(n.pod, at)
	if progress.Patch != nil || progress.After < 4*time.Second || progress.After > 5*time.Second {
		t.Errorf("step %v, want to wait for about 5 s", progress)
	}
	if progress := inplace.Next(n.pod, at.Add(5*time.Second-time.Millisecond)); progress.Patch != nil {
		t.Error("the pod changes before the end of the grace period")
	}
	progress = inplace.Next(n.pod, at.Add(6*time.Second))
	if progress.Patch == nil || progress.Patch.Images["main"] != "main:2" || *progress.Patch.Labels["tier"] != "gold" {
		t.Fatalf("step %v, want the new image and the new label", progress)
	}
	n.write(progress.Patch, all)
	if _, waiting := n.pod.Annotations[pub.InPlaceUpdateGraceKey]; waiting {
		t.Error("the annotation of the grace period is kept")
	}
	finish(t, n, at)
}

func TestGracePeriodOnlyIfContainersRestart(t *testing.T) {
	one, two := template("main:1"), template("main:1")
	two.Labels["tier"] = "gold"
	n := newNode(pod(one))
	patch := start(t, n, one, two, "web-b", time.Hour, now)
	if len(patch.Conditions) > 0 || patch.Labels["tier"] == nil {
		t.Errorf("got %v, want only the label", patch)
	}
	if state := *patch.Annotations[pub.InPlaceUpdateStateKey]; !strings.Contains(state, `"containers":[]`) {
		t.Errorf("state %s, want a batch without containers", state)
	}
	n.write(patch, all)
	finish(t, n, now)
}

func TestConditionOfNewPod(t *testing.T) {
	p := pod(template("main:1"))
	p.Status.Conditions = p.Status.Conditions[:1]
	progress := inplace.Next(p, now)
	if progress.Patch == nil || progress.Patch.Conditions[0].Type != pub.InPlaceUpdateReady ||
		progress.Patch.Conditions[0].Status != corev1.ConditionTrue || len(progress.Patch.Annotations) > 0 {
		t.Errorf("got %v, want the condition True", progress.Patch)
	}
	p.Spec.ReadinessGates = nil
	if progress := inplace.Next(p, now); progress.Patch != nil {
		t.Errorf("got %v for a pod without the gate", progress.Patch)
	}
}

func TestCrashBeforeTheImages(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 0, now), 1)
	if !inplace.InProgress(n.pod) {
		t.Error("a pod that was marked not ready is not in progress")
	}
	// The set is paused meanwhile: the pod becomes ready again.
	n.write(inplace.Next(n.pod, now).Patch, all)
	finish(t, n, now)
	if n.runs["main"] != "main:1" {
		t.Errorf("runs %v, want the old image", n.runs)
	}
}

func TestRollback(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	for name, test := range map[string]struct {
		between func(*node)
		starts  int
	}{
		"before the kubelet acts":     {func(*node) {}, 0},
		"while the image is pulled":   {func(n *node) { n.unpullable["main:2"] = true; n.sync(now) }, 1},
		"after the container started": {func(n *node) { n.sync(now) }, 2},
		"after the container crashed": {func(n *node) { n.sync(now); n.crash(now) }, 3},
	} {
		for _, grace := range []time.Duration{0, time.Second} {
			t.Run(name+" with grace period "+grace.String(), func(t *testing.T) {
				n := newNode(pod(one))
				n.write(start(t, n, one, two, "web-b", grace, now), all)
				if grace > 0 && name != "before the kubelet acts" {
					n.write(inplace.Next(n.pod, now.Add(2*grace)).Patch, all)
				}
				test.between(n)
				n.write(start(t, n, two, one, "web-a", grace, now.Add(5*time.Second)), all)
				finish(t, n, now.Add(time.Minute))
				if n.runs["main"] != "main:1" || n.started != test.starts {
					t.Errorf("runs %v after %d starts, want the old image after %d", n.runs, n.started, test.starts)
				}
				if n.pod.Labels["controller-revision-hash"] != "web-a" {
					t.Error("the pod does not have the label of the old revision")
				}
			})
		}
	}
}

// A newer revision arrives while the container of the previous one is started: its start does not
// finish the newer update.
func TestNewerRevisionDuringAnUpdate(t *testing.T) {
	one, two, three := template("main:1"), template("main:2"), template("main:3")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 0, now), all)
	at := now.Add(10 * time.Second)
	patch := start(t, n, two, three, "web-c", 0, at)
	n.crash(now.Add(time.Second)) // The kubelet starts a container before it sees the third image.
	n.pod.Status.ContainerStatuses[0].Image, n.runs["main"] = "docker.io/library/main:2", "main:2"
	n.write(patch, all)
	n.observe()
	if inplace.Done(n.pod) {
		t.Error("the update is done with the superseded image")
	}
	finish(t, n, at)
}

// The annotations are what OpenKruise writes.
func TestUpdateOfOpenKruiseIsContinued(t *testing.T) {
	const started = `{"revision":"web-b","updateTimestamp":"2026-11-21T12:00:00Z",` +
		`"lastContainerStatuses":{"main":{"imageID":"id-main:1"}},"updateImages":true`
	for name, test := range map[string]struct {
		pod   func(*node)
		state string
		grace string
	}{
		"after the write": {
			func(n *node) { n.pod.Spec.Containers[0].Image, n.pod.Generation = "main:2", 2 }, started + "}", "",
		},
		"in the grace period": {
			func(*node) {},
			`{"revision":"web-b","updateTimestamp":"2026-11-21T12:00:00Z","lastContainerStatuses":null,"updateImages":true}`,
			`{"revision":"web-b","containerImages":{"main":"main:2"},"graceSeconds":10,"oldTemplate":{"metadata":{},"spec":{}}}`,
		},
		"before the second batch": {
			func(n *node) { n.pod.Spec.Containers[0].Image, n.pod.Generation = "main:2", 2 },
			started + `,"nextContainerImages":{"side":"side:2"},"preCheckBeforeNext":{"containersRequiredReady":["main"]}}`, "",
		},
		"tags of the same image": {
			func(n *node) {
				n.pod.Spec.Containers[0].Image, n.pod.Generation = "main:2", 2
				n.alias["main:2"] = "main:1"
			}, started + "}", "",
		},
		"tags of the same image, the new one is reported": {
			func(n *node) {
				n.pod.Spec.Containers[0].Image, n.pod.Generation = "main:2", 2
				n.alias["main:2"], n.pod.Status.ContainerStatuses[0].Image = "main:1", "main:2"
			}, started + "}", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(pod(template("main:1")))
			n.pod.Labels["controller-revision-hash"] = "b" // The short form.
			n.pod.Annotations[pub.InPlaceUpdateStateKey] = test.state
			if test.grace != "" {
				n.pod.Annotations[pub.InPlaceUpdateGraceKey] = test.grace
			}
			planning.Condition(n.pod, pub.InPlaceUpdateReady).Status = corev1.ConditionFalse
			test.pod(n)
			n.observe()
			if inplace.Done(n.pod) {
				t.Error("done before the container is replaced")
			}
			finish(t, n, now)
			if n.runs["main"] != "main:2" || strings.Contains(test.state, "side") && n.runs["side"] != "side:2" {
				t.Errorf("runs %v", n.runs)
			}
		})
	}
}

func TestUnreadableAnnotations(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		refused     bool
		removed     []string
	}{
		"state": {map[string]string{pub.InPlaceUpdateStateKey: "{"}, false, []string{pub.InPlaceUpdateStateKey}},
		"grace": {map[string]string{pub.InPlaceUpdateStateKey: "{}", pub.InPlaceUpdateGraceKey: "{"}, true, nil},
		"grace without state": {
			map[string]string{pub.InPlaceUpdateGraceKey: `{"revision":"web-a"}`}, true, nil,
		},
		"grace of another revision": {
			map[string]string{pub.InPlaceUpdateStateKey: "{}", pub.InPlaceUpdateGraceKey: `{"revision":"web-x"}`},
			false, []string{pub.InPlaceUpdateGraceKey},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(pod(template("main:1")))
			n.pod.Annotations = test.annotations
			planning.Condition(n.pod, pub.InPlaceUpdateReady).Status = corev1.ConditionFalse
			progress := inplace.Next(n.pod, now)
			if (progress.Refused != "") != test.refused {
				t.Fatalf("Refused = %q, want one: %v", progress.Refused, test.refused)
			}
			if test.refused {
				return
			}
			n.write(progress.Patch, all)
			for _, key := range test.removed {
				if _, ok := n.pod.Annotations[key]; ok {
					t.Errorf("annotation %s is kept", key)
				}
			}
			finish(t, n, now)
		})
	}
}

func TestPodWithoutContainers(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	n := newNode(pod(one))
	n.pod.Status.ContainerStatuses = nil
	n.write(start(t, n, one, two, "web-b", 0, now), all)
	n.observe()
	if progress := inplace.Next(n.pod, now); progress.Patch == nil || progress.Patch.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("step %v, want that a pod that never ran is updated at once", progress)
	}
}

func TestPodWithoutGate(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	n := newNode(pod(one))
	n.pod.Spec.ReadinessGates, n.pod.Status.Conditions = nil, n.pod.Status.Conditions[:1]
	patch := start(t, n, one, two, "web-b", time.Hour, now)
	if len(patch.Conditions) > 0 || patch.Images["main"] != "main:2" {
		t.Errorf("got %v, want the image at once", patch)
	}
	n.write(patch, all)
	if inplace.Done(n.pod) {
		t.Error("done before the container is replaced")
	}
	n.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	n.pod.Status.ContainerStatuses[0].ContainerID, n.pod.Status.ContainerStatuses[0].ImageID = "c2", "id-main:2"
	n.observe()
	if !inplace.Done(n.pod) {
		t.Error("not done after the container is replaced")
	}
}
