// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/test/builders"
)

const entry = `{"f:metadata":{"f:annotations":{"f:cost":{}},"f:labels":{"f:idle":{}}},
	"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:status":{},"f:type":{}}}}}`

func full() *corev1.Pod {
	pod := builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
		Annotation("cost", "-10").Annotation("foreign", "long").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
		InitContainer("setup", false).InitContainer("proxy", true).
		Condition(corev1.PodCondition{Type: "Ready", Status: corev1.ConditionTrue}).
		Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
		ManagedFields("kubelet", "status", "{}").ManagedFields("seamark", "status", entry).
		Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:spec":{"f:volumes":{}}}`).Build()
	pod.CreationTimestamp = metav1.Time{Time: time.Unix(1_700_000_000, 0)}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	return pod
}

func TestTrimPod(t *testing.T) {
	want := builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
		Annotation("cost", "-10").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
		InitContainer("proxy", true).
		Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
		ManagedFields("seamark", "status", entry).
		Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}}}`).Build()
	for i := range want.Spec.Containers {
		want.Spec.Containers[i].Image = ""
	}
	want.Spec.InitContainers[0].Image = ""
	got, err := typed(trimPod)(full())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trimmed pod (-want +got):\n%s", diff)
	}
	again, err := typed(trimPod)(got)
	if err != nil || !equality.Semantic.DeepEqual(got, again) {
		t.Errorf("trimming twice differs: %v\n%s", err, cmp.Diff(got, again))
	}
}

// TestTrimmedPodDecidesAsTheWholeOne holds the transform to what the pure packages read.
func TestTrimmedPodDecidesAsTheWholeOne(t *testing.T) {
	marker, err := plan.Compile(builders.Marker("ns", "web").
		Probe(builders.Probe("a").Container("web")).Probe(builders.Probe("b").Container("proxy")).
		Probe(builders.Probe("c").Container("setup")).Build())
	if err != nil {
		t.Fatal(err)
	}
	markers := []*plan.Marker{marker}
	whole, trimmed := full(), trimPod(full())
	if diff := cmp.Diff(plan.Pod(whole, markers, plan.KubernetesDefaults()), plan.Pod(trimmed, markers, plan.KubernetesDefaults())); diff != "" {
		t.Errorf("plans differ (-whole +trimmed):\n%s", diff)
	}
	before, err := mark.Owned(whole)
	if err != nil {
		t.Fatal(err)
	}
	after, err := mark.Owned(trimmed)
	if err != nil || !before.Equal(after) || len(before) == 0 {
		t.Errorf("owned marks differ: %v, %v, %v", before, after, err)
	}
	inherited, err := mark.Inherited(whole.ManagedFields)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := mark.Inherited(trimmed.ManagedFields)
	if err != nil || !inherited.Equal(kept) || len(inherited) == 0 {
		t.Errorf("inherited marks differ: %v, %v, %v", inherited, kept, err)
	}
}

func TestTrimNode(t *testing.T) {
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"a": "b"},
		Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "zone": "z"},
	}}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7", Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet"},
	}}
	if diff := cmp.Diff(want, trimNode(node)); diff != "" {
		t.Errorf("trimmed node (-want +got):\n%s", diff)
	}
}

func TestTrimServerlessPod(t *testing.T) {
	whole := full()
	whole.Annotations["kruise.io/podprobe"], whole.Annotations["kruise.io/podprobemarker-list"] = "[]", "web"
	whole.Status.Conditions = append(whole.Status.Conditions, corev1.PodCondition{Type: "game.io/role", Status: corev1.ConditionFalse})
	trimmed := trimServerlessPod(whole)
	if diff := cmp.Diff(map[string]string{"cost": "-10", "kruise.io/podprobe": "[]", "kruise.io/podprobemarker-list": "web"}, trimmed.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	var types []string
	for _, c := range trimmed.Status.Conditions {
		types = append(types, string(c.Type))
	}
	if diff := cmp.Diff([]string{"Initialized", "game.io/idle", "game.io/role"}, types); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(trimmed, trimServerlessPod(trimmed)); diff != "" {
		t.Errorf("trimming again changes it (-once +twice):\n%s", diff)
	}
	if len(whole.Status.Conditions) != 4 {
		t.Error("the whole pod was changed")
	}
}
