// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/cached"
	"github.com/seamark-dev/seamark/test/builders"
)

const entry = `{"f:metadata":{"f:annotations":{"f:cost":{}},"f:labels":{"f:idle":{}}},
	"f:status":{"f:conditions":{"k:{\"type\":\"game.io/idle\"}":{".":{},"f:status":{},"f:type":{}}}}}`

func created() metav1.Time { return metav1.Time{Time: time.Unix(1_700_000_000, 0)} }

func fullPod() *corev1.Pod {
	pod := builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
		Annotation("cost", "-10").Annotation("foreign", "long").
		Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").
		Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").
		Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
		InitContainer("setup", false).InitContainer("proxy", true).
		Condition(corev1.PodCondition{Type: "Ready", Status: corev1.ConditionTrue}).
		Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
		Condition(corev1.PodCondition{Type: "game.io/role", Status: corev1.ConditionFalse}).
		ManagedFields("kubelet", "status", "{}").ManagedFields("seamark", "status", entry).
		Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}},"f:spec":{"f:volumes":{}}}`).Build()
	pod.CreationTimestamp = created()
	pod.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
	return pod
}

func TestTrimPod(t *testing.T) {
	base := func() *builders.PodBuilder {
		return builders.Pod("ns", "a").Label("app", "game").Label("idle", "true").
			Annotation("cost", "-10").Annotation("foreign", "").
			Annotation("kruise.io/podprobe", "").Annotation("kruise.io/podprobemarker-list", "").
			Annotation("kubernetes.io/config.mirror", "h").Annotation("kubernetes.io/config.hash", "h").
			Container("web", corev1.ContainerPort{Name: "http", ContainerPort: 80}).
			InitContainer("proxy", true).
			Condition(corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue, Message: "idle"}).
			ManagedFields("seamark", "status", entry).
			Updated("kruise-manager", "", `{"f:metadata":{"f:labels":{"f:idle":{}}}}`)
	}
	cases := map[string]struct {
		options view.Options
		want    *builders.PodBuilder
	}{
		"agents": {want: base()},
		"agents and providers": {
			options: view.Options{Serverless: true},
			want: base().Annotation("kruise.io/podprobe", "[]").Annotation("kruise.io/podprobemarker-list", "web").
				Condition(corev1.PodCondition{Type: "game.io/role", Status: corev1.ConditionFalse}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.want.Build()
			want.CreationTimestamp = created()
			for i := range want.Spec.Containers {
				want.Spec.Containers[i].Image = ""
			}
			want.Spec.InitContainers[0].Image = ""
			whole := fullPod()
			got := view.NewPodTrimmer(tc.options).Trim(whole)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trimmed pod (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(fullPod(), whole); diff != "" {
				t.Errorf("original pod changed (-before +after):\n%s", diff)
			}
		})
	}
}

// Pods that differ in one field do not share it.
func TestTrimmedPodsShareOnlyEqualFields(t *testing.T) {
	web := func(pod *corev1.Pod) *corev1.Container { return &pod.Spec.Containers[len(pod.Spec.Containers)-1] }
	pods := map[string]func(pod *corev1.Pod){
		"same":           func(*corev1.Pod) {},
		"label":          func(pod *corev1.Pod) { pod.Labels["app"] = "db" },
		"annotation":     func(pod *corev1.Pod) { pod.Annotations["cost"] = "1" },
		"container":      func(pod *corev1.Pod) { web(pod).Name = "db" },
		"port":           func(pod *corev1.Pod) { web(pod).Ports[0].ContainerPort = 81 },
		"name of port":   func(pod *corev1.Pod) { web(pod).Ports[0].Name = "grpc" },
		"no port":        func(pod *corev1.Pod) { web(pod).Ports = nil },
		"sidecar":        func(pod *corev1.Pod) { pod.Spec.InitContainers[1].Name = "mesh" },
		"initialized":    func(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse },
		"own fields":     func(pod *corev1.Pod) { pod.ManagedFields[1].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{}}`) },
		"subresource":    func(pod *corev1.Pod) { pod.ManagedFields[1].Subresource = "" },
		"no other owner": func(pod *corev1.Pod) { pod.ManagedFields = pod.ManagedFields[:2] },
		"condition": func(pod *corev1.Pod) {
			own := corev1.PodCondition{Type: "game.io/idle", Status: corev1.ConditionTrue}
			pod.Status.Conditions = append(pod.Status.Conditions, own)
		},
		"address and age": func(pod *corev1.Pod) { pod.Status.PodIP, pod.ResourceVersion = "10.0.0.9", "10" },
	}
	shared := view.NewPodTrimmer(view.Options{})
	for range 2 {
		for name, change := range pods {
			pod := fullPod()
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
			change(pod)
			if diff := cmp.Diff(view.NewPodTrimmer(view.Options{}).Trim(pod), shared.Trim(pod)); diff != "" {
				t.Errorf("%s: pod (-alone +sharing):\n%s", name, diff)
			}
		}
	}
}

func TestTrimNode(t *testing.T) {
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"a": "b"},
		Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "liqo.io/type": "virtual-node", "zone": "z"},
	}}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "n", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{v1alpha1.NodeTypeLabel: "virtual-kubelet", "liqo.io/type": "virtual-node"},
	}}
	if diff := cmp.Diff(want, view.TrimNode(node)); diff != "" {
		t.Errorf("trimmed node (-want +got):\n%s", diff)
	}
}

func TestTransformPassesOtherTypes(t *testing.T) {
	trim := view.Transform(view.TrimNode)
	pod := builders.Pod("ns", "a").Build()
	if got, err := trim(pod); got != any(pod) || err != nil {
		t.Errorf("transformed to %v, %v", got, err)
	}
}
