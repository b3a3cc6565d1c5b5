// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/seamark-dev/seamark/api/apps/pub"
	"github.com/seamark-dev/seamark/internal/program/guard"
	"github.com/seamark-dev/seamark/internal/workloads/inplace"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
)

// TestGuardedUpdateInPlace continues an update in place of a pod that a guard has protected since its start.
func TestGuardedUpdateInPlace(t *testing.T) {
	t.Parallel()
	cpu := map[string]corev1.ResourceRequirements{"main": {Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}
	for name, test := range map[string]struct {
		change inplace.Change
		policy corev1.ResourceResizeRestartPolicy
		waits  bool
	}{
		"image":                    {inplace.Change{Images: map[string]string{"main": "new"}}, corev1.NotRequired, true},
		"resize with a restart":    {inplace.Change{Resources: cpu}, corev1.RestartContainer, true},
		"resize without a restart": {inplace.Change{Resources: cpu}, corev1.NotRequired, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1_800_000_000, 0)
			pod := builders.Pod("games", "game").Build()
			pod.Labels = map[string]string{
				pub.LifecycleStateKey: string(pub.LifecycleStateUpdating), appsv1.ControllerRevisionHashLabelKey: "r",
			}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: pub.InPlaceUpdateReady}}
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: test.policy}}
			pod.Annotations = map[string]string{}
			patch := inplace.Start(pod, &test.change, inplace.Target{Revision: "r", Grace: time.Second}, now)
			pod.Status.Conditions = append(pod.Status.Conditions, patch.Conditions...)
			for key, value := range patch.Annotations {
				if value != nil {
					pod.Annotations[key] = *value
				}
			}
			pod.Labels[builders.GuardLabel] = "update"
			s := &Step{Input: planning.Input{Guards: builders.Guards(), Now: now.Add(time.Minute)}, held: guard.Held{}}
			if inplace.Next(pod, s.Now).Patch == nil {
				t.Fatal("the update does not go on without guards either")
			}
			progress, waits := s.Next(pod)
			if waits != test.waits || (progress.Patch == nil) != test.waits || (s.held.Message() != "") != test.waits {
				t.Errorf("the update waits: %t, and %q is held, want %t", waits, s.held.Message(), test.waits)
			}
		})
	}
}
