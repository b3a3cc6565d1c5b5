// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/plan"
	"github.com/seamark-dev/seamark/internal/probeid"
	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/internal/streak"
)

// TestLargestNodeIsStored stores the largest plan together with a report whose messages all have
// their maximum length: etcd limits both together.
func TestLargestNodeIsStored(t *testing.T) {
	t.Parallel()
	object := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "largest"}, Spec: largestPlan(t, 250, 8)}
	if err := server.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Client.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
			t.Log("delete the plan:", err)
		}
	})
	states := report.States{}
	for i := range object.Spec.PodProbes {
		pod := &object.Spec.PodProbes[i]
		for j := range pod.Probes {
			key, err := probeid.KeyOf(pod, &pod.Probes[j])
			if err != nil {
				t.Fatal(err)
			}
			states[key] = streak.State{
				State: v1alpha1.ProbeSucceeded, Message: strings.Repeat("<m>", 341), ContainerID: "0123456789abc",
				LastProbe: time.Now(), LastTransition: time.Now(),
			}
		}
	}
	decision := report.Decide(time.Now(), report.Plan{Generation: object.Generation, Pods: object.Spec.PodProbes}, report.Ledger{}, states)
	object.Status = decision.Status
	if err := server.Client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	stored, reported := &v1alpha1.NodePodProbe{}, 0
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(object), stored); err != nil {
		t.Fatal(err)
	}
	for _, pod := range stored.Status.PodProbeStatuses {
		reported += len(pod.ProbeStates)
	}
	if reported != 2000 {
		t.Errorf("%d states are stored, want 2000", reported)
	}
	t.Logf("plan: %d bytes, report: %d bytes, message: %d bytes", size(t, stored.Spec), size(t, stored.Status),
		len(stored.Status.PodProbeStatuses[0].ProbeStates[0].Message))
}

// largestPlan returns a plan whose commands are as long as its budget permits.
func largestPlan(t *testing.T, pods, probes int) v1alpha1.NodePodProbeSpec {
	t.Helper()
	build := func(command string) v1alpha1.NodePodProbeSpec {
		var spec v1alpha1.NodePodProbeSpec
		for i := range pods {
			name := fmt.Sprintf("game-server-7f5bc78bcb-%03d", i)
			pod := v1alpha1.PodProbe{Namespace: "games", Name: name, UID: "8a8d2f7e-5a43-4dc5-a0bb-" + fmt.Sprintf("%012d", i), IP: "10.0.0.1"}
			for j := range probes {
				pod.Probes = append(pod.Probes, v1alpha1.ContainerProbe{
					Name: fmt.Sprintf("game-server#state-%d", j), ContainerName: "game-server", Plan: "0123abcd",
					Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
						ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", command}}},
						PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
					}},
				})
			}
			spec.PodProbes = append(spec.PodProbes, pod)
		}
		return spec
	}
	room := (plan.MaxBytes - size(t, build(""))) / (pods * probes)
	return build(strings.Repeat("c", room))
}

func size(t *testing.T, part any) int {
	t.Helper()
	body, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return len(body)
}
