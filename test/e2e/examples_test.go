// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// restarted expects that the first container restarted at least once.
func restarted(pod *corev1.Pod) error {
	return await.ErrorIf(len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0, "pod %s: no restarts", pod.Name)
}

// costsItsPlayers expects that the deletion cost is the number of players in the message.
func costsItsPlayers(pod *corev1.Pod) error {
	cost := pod.Annotations[corev1.PodDeletionCost]
	return hasCondition("game.io/stats", corev1.ConditionTrue, fmt.Sprintf(`"players":%s,`, cost))(pod)
}

// all combines expectations of one pod.
func all(wants ...expectation) expectation {
	return func(pod *corev1.Pod) error {
		for _, want := range wants {
			if err := want(pod); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestExamples checks that the examples behave in a cluster as with `seamark local`: some pod
// meets each expectation at some time.
func TestExamples(t *testing.T) {
	t.Parallel()
	cases := map[string][]expectation{
		"game-server": {
			all(hasCondition("game.io/idle", corev1.ConditionTrue), hasLabel("gameserver-idle", "true"),
				hasAnnotation("controller.kubernetes.io/pod-deletion-cost", "-10")),
			all(hasCondition("game.io/idle", corev1.ConditionFalse), hasLabel("gameserver-idle", "false"),
				hasAnnotation("controller.kubernetes.io/pod-deletion-cost", "10")),
		},
		"first-marker": {hasCondition("example.com/busy", corev1.ConditionFalse)},
		"primary-secondary": {
			all(hasLabel("role", "primary"), hasAnnotation("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")),
			all(hasLabel("role", "secondary"), lacksAnnotation("cluster-autoscaler.kubernetes.io/safe-to-evict")),
			hasCondition("example.com/caught-up", corev1.ConditionTrue, "seconds behind"),
		},
		"one-primary": {
			all(hasLabel("role", "primary"), hasCondition("example.com/primary", corev1.ConditionTrue)),
			all(hasLabel("role", "unknown"), hasCondition("example.com/primary", corev1.ConditionUnknown, "Another pod")),
			all(hasLabel("role", "replica"), hasCondition("example.com/primary", corev1.ConditionFalse)),
		},
		"startup-then-liveness": {
			all(hasLabel("stage", "loading"), hasCondition("example.com/loaded", corev1.ConditionFalse)),
			all(hasLabel("stage", "working"), hasCondition("example.com/loaded", corev1.ConditionTrue)),
			all(hasLabel("stage", "loading"), lacksCondition("example.com/fresh")),
			hasCondition("example.com/fresh", corev1.ConditionTrue),
			restarted,
		},
		"deletion-cost-by-players": {
			all(hasLabel("game.io/map", "dust"), costsItsPlayers), all(hasLabel("game.io/map", "mill"), costsItsPlayers),
		},
		"readiness-gate": {all(hasCondition("example.com/open", corev1.ConditionTrue), hasCondition("Ready", corev1.ConditionTrue))},
		"grpc": {
			all(hasLabel("intake", "open"), hasCondition("example.com/intake", corev1.ConditionTrue)),
			all(hasLabel("intake", "closed"), hasCondition("example.com/intake", corev1.ConditionFalse)),
		},
		"probes/exec-liveness.yaml":   {restarted},
		"probes/exec-readiness.yaml":  {hasCondition("Ready", corev1.ConditionTrue), hasCondition("Ready", corev1.ConditionFalse)},
		"probes/http-liveness.yaml":   {restarted},
		"probes/startup-failure.yaml": {restarted},
	}
	for example, wants := range cases {
		t.Run(strings.ReplaceAll(example, "/", "-"), func(t *testing.T) {
			t.Parallel()
			s := newSuite(t)
			manifests, err := filepath.Abs(filepath.Join("../../examples", example))
			cluster.Must(t, err)
			s.Kubectl("apply", "-f", manifests)
			met := make([]bool, len(wants))
			s.Eventually("pods of "+example+" meet each expectation", func(ctx context.Context) error {
				pods := &corev1.PodList{}
				if err := s.Client.List(ctx, pods, ctrl.InNamespace(s.Namespace)); err != nil {
					return err
				}
				return meetsOnce(pods.Items, wants, met)
			})
		})
	}
}

// meetsOnce records the expectations that a pod meets, and returns those that none has met yet.
func meetsOnce(pods []corev1.Pod, wants []expectation, met []bool) error {
	var unmet error
	for i, want := range wants {
		var last error
		for j := range pods {
			if err := want(&pods[j]); err != nil {
				last = err
				continue
			}
			met[i] = true
		}
		if !met[i] {
			unmet = errors.Join(unmet, fmt.Errorf("expectation %d: %w", i+1, last))
		}
	}
	if unmet == nil && len(pods) == 0 {
		return errors.New("no pods")
	}
	return unmet
}
