// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// TestGameServerExample applies the manifests of examples/game-server as the README describes.
func TestGameServerExample(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	dir, err := filepath.Abs("../../examples/game-server")
	cluster.Must(t, err)
	manifests, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	cluster.Must(t, err)
	for _, manifest := range manifests {
		s.Kubectl("apply", "-f", manifest)
	}

	seen := map[corev1.ConditionStatus]string{}
	s.Eventually("one server is idle and one is playing", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.Client.List(ctx, pods, ctrl.InNamespace(s.Namespace)); err != nil {
			return err
		}
		for i := range pods.Items {
			status, err := agreeing(&pods.Items[i])
			if err != nil {
				return err
			}
			seen[status] = pods.Items[i].Name
		}
		if len(seen) < 2 {
			return fmt.Errorf("seen: %v", seen)
		}
		return nil
	})

	for reason, status := range map[string]corev1.ConditionStatus{
		appsv1alpha1.EventReasonProbeSucceeded: corev1.ConditionTrue,
		appsv1alpha1.EventReasonProbeFailed:    corev1.ConditionFalse,
	} {
		s.Eventually("kubectl describe pod shows the event "+reason, func(context.Context) error {
			described := s.Kubectl("describe", "pod", seen[status])
			for _, want := range []string{reason, appsv1alpha1.EventSourceComponent, "game.io/idle", "gameserver-idle"} {
				if !strings.Contains(described, want) {
					return fmt.Errorf("no %q in\n%s", want, described)
				}
			}
			return nil
		})
	}
	s.Eventually("kubectl get ppm shows the matched pods", func(context.Context) error {
		if shown := s.Kubectl("get", "ppm"); !strings.Contains(shown, "MATCHED") {
			return fmt.Errorf("no column MATCHED in\n%s", shown)
		}
		return nil
	})
}

// agreeing returns the status of a game server's condition, or an error if the condition, the
// label and the annotation, which are written together, do not agree.
func agreeing(pod *corev1.Pod) (corev1.ConditionStatus, error) {
	c := findCondition(pod, "game.io/idle")
	if c == nil {
		return "", fmt.Errorf("pod %s has no condition yet", pod.Name)
	}
	want := map[corev1.ConditionStatus][2]string{
		corev1.ConditionTrue: {"true", "-10"}, corev1.ConditionFalse: {"false", "10"},
	}[c.Status]
	got := [2]string{pod.Labels["gameserver-idle"], pod.Annotations["controller.kubernetes.io/pod-deletion-cost"]}
	if got != want {
		return "", fmt.Errorf("pod %s: condition %s with label and deletion cost %v, want %v", pod.Name, c.Status, got, want)
	}
	if c.Message == "" || c.LastProbeTime.IsZero() || c.LastTransitionTime.IsZero() || time.Since(c.LastProbeTime.Time) < 0 {
		return "", fmt.Errorf("pod %s: the condition has no message or time: %v", pod.Name, c)
	}
	return c.Status, nil
}
