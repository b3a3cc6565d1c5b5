// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package trim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/workloads/trim"
)

// TestPodsKeepWhatPlannersRead trims a pod that has only fields that planners or the executor read. The tests of
// planners and of updates in place trim their pods, too.
func TestPodsKeepWhatPlannersRead(t *testing.T) {
	one := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	started := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.Now()}}
	container := corev1.Container{
		Name: "main", Image: "a:1", Resources: one, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		ResizePolicy: []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}},
		Env:          []corev1.EnvVar{{Name: pub.ContainerLaunchPriorityEnv, Value: "1"}, {Name: pub.ContainerLaunchBarrierEnv}},
	}
	status := []corev1.ContainerStatus{{
		Name: "main", Image: "a:1", ImageID: "1", ContainerID: "c", Ready: true, RestartCount: 1,
		Resources: &one, State: started, LastTerminationState: started,
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "a", UID: "u", Labels: map[string]string{"a": "b"}, Finalizers: []string{"a/b"}, CreationTimestamp: metav1.Now(),
			Annotations: map[string]string{
				pub.InPlaceUpdateStateKey: "{}", pub.LifecycleTimestampKey: "x", corev1.PodDeletionCost: "1", pub.ResizeRefusedKey: "no",
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "a"}}, Resources: &one,
			Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, ObservedGeneration: 2,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady}}, ContainerStatuses: status,
		},
	}
	if diff := cmp.Diff(pod, trim.Pod(nil)(pod)); diff != "" {
		t.Errorf("trimmed pod (-want +got):\n%s", diff)
	}
}
