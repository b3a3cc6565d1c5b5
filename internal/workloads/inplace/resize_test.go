// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package inplace_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
)

func TestResize(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	two.Spec.Containers[0].Resources.Requests = list("cpu", "2")
	for name, writes := range map[string]int{"all writes": all, "crash before the resize": 2} {
		t.Run(name, func(t *testing.T) {
			n := newNode(pod(one))
			n.write(start(t, n, one, two, "web-b", 0, now), writes)
			if inplace.Done(n.pod) {
				t.Error("done before the kubelet acts")
			}
			finish(t, n, now)
			if cpu := n.pod.Spec.Containers[0].Resources.Requests["cpu"]; cpu.String() != "2" {
				t.Errorf("cpu %s, want 2", cpu.String())
			}
			if strings.Contains(n.pod.Annotations[pub.InPlaceUpdateStateKey], "nextContainerResources") {
				t.Error("the state keeps the resources")
			}
		})
	}
	two.Spec.Containers[0].Image = "main:1"
	n := newNode(pod(one))
	patch := start(t, n, one, two, "web-b", time.Hour, now)
	if len(patch.Conditions) > 0 {
		t.Error("a resize without restart makes the pod not ready")
	}
	n.write(patch, all)
	n.pod.Status.Conditions = append(n.pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: "Infeasible", Message: "no CPU",
	})
	n.pod.Status.ObservedGeneration = n.pod.Generation
	if progress := inplace.Next(n.pod, now); progress.Refused != "the resize is infeasible: no CPU" || progress.Patch != nil {
		t.Errorf("step %+v, want that the update is refused", progress)
	}
	n.pod.Status.Conditions[2].Reason = "Deferred"
	if progress := inplace.Next(n.pod, now); progress.Refused != "" || progress.Patch != nil || inplace.Done(n.pod) {
		t.Errorf("step %+v, want to wait", progress)
	}
}

// TestResizeKeepsOtherResources updates the cpu of a container whose memory somebody else changes, before the update or while
// it is in progress: the memory stays as it is in the pod.
func TestResizeKeepsOtherResources(t *testing.T) {
	memory := func(n *node, quantity string) {
		n.pod.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse(quantity)
		n.pod.Spec.Containers[0].Resources.Limits = list("memory", quantity)
		n.pod.Generation++
	}
	for name, tc := range map[string]struct {
		before, during string
		image          string
		writes         int
		grace          time.Duration
		want           string
	}{
		"nobody":                    {image: "main:1", writes: all, want: "1Gi"},
		"before the update":         {before: "3Gi", image: "main:1", writes: all, want: "3Gi"},
		"with another image":        {before: "3Gi", image: "main:2", writes: all, want: "3Gi"},
		"after the resize":          {during: "3Gi", image: "main:1", writes: all, want: "3Gi"},
		"crash before the resize":   {during: "3Gi", image: "main:2", writes: 2, want: "3Gi"},
		"during the time of grace":  {during: "3Gi", image: "main:2", writes: all, grace: 30 * time.Second, want: "3Gi"},
		"before and while it waits": {before: "2Gi", during: "3Gi", image: "main:2", writes: all, grace: 30 * time.Second, want: "3Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := template("main:1"), template(tc.image)
			for spec, cpu := range map[*corev1.PodTemplateSpec]string{one: "1", two: "2"} {
				spec.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list("cpu", cpu, "memory", "1Gi"), Limits: list("memory", "1Gi")}
			}
			n := newNode(pod(one))
			if tc.before != "" {
				memory(n, tc.before)
			}
			n.write(start(t, n, one, two, "web-b", tc.grace, now), tc.writes)
			if tc.during != "" {
				memory(n, tc.during)
			}
			finish(t, n, now)
			got := n.pod.Spec.Containers[0].Resources
			want := corev1.ResourceRequirements{Requests: list("cpu", "2", "memory", tc.want), Limits: list("memory", tc.want)}
			if !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("resources %v, want %v", got, want)
			}
		})
	}
}

// TestResizeOfTheNextRevision changes the memory while the cpu of the revision before is not written yet: both are.
func TestResizeOfTheNextRevision(t *testing.T) {
	one, two := template("main:1"), template("main:2")
	two.Spec.Containers[0].Resources.Requests = list("cpu", "2")
	three := two.DeepCopy()
	three.Spec.Containers[0].Resources.Requests = list("cpu", "2", "memory", "1Gi")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 30*time.Second, now), all)
	n.write(start(t, n, two, three, "web-c", 30*time.Second, now), all)
	finish(t, n, now)
	if got := n.pod.Spec.Containers[0].Resources.Requests; !equality.Semantic.DeepEqual(got, list("cpu", "2", "memory", "1Gi")) {
		t.Errorf("requests %v", got)
	}
}

func TestResizeThatTheAPIServerRefuses(t *testing.T) {
	one, two := template("main:1"), template("main:1")
	two.Spec.Containers[0].Resources.Requests = list("cpu", "2")
	n := newNode(pod(one))
	n.write(start(t, n, one, two, "web-b", 0, now), 1)
	n.pod.Annotations[pub.ResizeRefusedKey] = "no"
	progress := inplace.Next(n.pod, now)
	if progress.Refused != "the API server refuses the resize: no" || progress.Stuck != progress.Refused || progress.Patch != nil {
		t.Errorf("step %+v, want that the update is refused", progress)
	}
	n.write(start(t, n, two, one, "web-a", 0, now), all)
	if why, ok := n.pod.Annotations[pub.ResizeRefusedKey]; ok {
		t.Errorf("a rollback keeps the annotation %q", why)
	}
	finish(t, n, now)
}

// TestStuckResizes checks what is said about a resize that does not take effect, and whether the pod must be recreated.
func TestStuckResizes(t *testing.T) {
	condition := func(kind corev1.PodConditionType, reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "no room"}
	}
	for name, tc := range map[string]struct {
		condition corev1.PodCondition
		stuck     string
		refused   bool
	}{
		"infeasible":  {condition(corev1.PodResizePending, corev1.PodReasonInfeasible), "the resize is infeasible: no room", true},
		"deferred":    {condition(corev1.PodResizePending, corev1.PodReasonDeferred), "the resize is deferred: no room", false},
		"fails":       {condition(corev1.PodResizeInProgress, corev1.PodReasonError), "the resize fails: no room", false},
		"in progress": {condition(corev1.PodResizeInProgress, ""), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := template("main:1"), template("main:1")
			two.Spec.Containers[0].Resources.Requests = list("cpu", "2")
			n := newNode(pod(one))
			n.write(start(t, n, one, two, "web-b", 0, now), all)
			n.pod.Status.Conditions = append(n.pod.Status.Conditions, tc.condition)
			if progress := inplace.Next(n.pod, now); progress.Stuck != "" || progress.Refused != "" {
				t.Errorf("step %+v before the kubelet has seen the change, want nothing about the resize", progress)
			}
			n.pod.Status.ObservedGeneration = n.pod.Generation
			progress := inplace.Next(n.pod, now)
			if progress.Stuck != tc.stuck || (progress.Refused != "") != tc.refused || inplace.Done(n.pod) {
				t.Errorf("step %+v, want %q, refused %t", progress, tc.stuck, tc.refused)
			}
		})
	}
}
