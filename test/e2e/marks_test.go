// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

// findCondition returns the pod's condition with the type, or nil.
func findCondition(pod *corev1.Pod, conditionType string) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if string(pod.Status.Conditions[i].Type) == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// expectation checks a property of a pod.
type expectation func(*corev1.Pod) error

// hasCondition expects the condition with the status and a message that contains each part.
func hasCondition(conditionType string, status corev1.ConditionStatus, parts ...string) expectation {
	return func(pod *corev1.Pod) error {
		c := findCondition(pod, conditionType)
		if c == nil {
			return fmt.Errorf("pod %s has no condition %s", pod.Name, conditionType)
		}
		if c.Status != status {
			return fmt.Errorf("pod %s: condition %s is %s (%q), want %s", pod.Name, conditionType, c.Status, c.Message, status)
		}
		for _, part := range parts {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("pod %s: message %q of %s does not contain %q", pod.Name, c.Message, conditionType, part)
			}
		}
		return nil
	}
}

// lacksCondition expects no condition with the type.
func lacksCondition(conditionType string) expectation {
	return func(pod *corev1.Pod) error {
		if c := findCondition(pod, conditionType); c != nil {
			return fmt.Errorf("pod %s still has condition %s=%s", pod.Name, conditionType, c.Status)
		}
		return nil
	}
}

func hasLabel(key, value string) expectation {
	return func(pod *corev1.Pod) error {
		got, has := pod.Labels[key]
		return await.ErrorIf(!has || got != value, "pod %s: label %s is %q (exists: %t), want %q", pod.Name, key, got, has, value)
	}
}

// lacksLabel expects no label with the key.
func lacksLabel(key string) expectation {
	return func(pod *corev1.Pod) error {
		got, has := pod.Labels[key]
		return await.ErrorIf(has, "pod %s still has label %s=%s", pod.Name, key, got)
	}
}

func hasAnnotation(key, value string) expectation {
	return func(pod *corev1.Pod) error {
		got, has := pod.Annotations[key]
		return await.ErrorIf(!has || got != value, "pod %s: annotation %s is %q (exists: %t), want %q", pod.Name, key, got, has, value)
	}
}

// meets returns a check of the pod that fails with the first expectation that it does not meet.
func (s *suite) meets(name string, wants ...expectation) func(context.Context) error {
	return func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, s.Key(name), pod); err != nil {
			return err
		}
		for _, want := range wants {
			if err := want(pod); err != nil {
				return err
			}
		}
		return nil
	}
}

// podIs waits until the pod meets all expectations.
func (s *suite) podIs(name string, wants ...expectation) {
	s.Helper()
	s.Eventually("pod "+name, s.meets(name, wants...))
}

func (s *suite) edit(name string, change func(*appsv1alpha1.PodProbeMarker)) {
	s.Helper()
	marker := &appsv1alpha1.PodProbeMarker{}
	cluster.Must(s, s.Client.Get(s.Context(), s.Key(name), marker))
	base := marker.DeepCopy()
	change(marker)
	cluster.Must(s, s.Client.Patch(s.Context(), marker, ctrl.MergeFrom(base)))
}

// planned reports whether the agent of the pod's node is to run the probe: a ProbePlan has it, and the
// NodePodProbe does not name the pod as removed.
func (s *suite) planned(ctx context.Context, pod *corev1.Pod, probe string) (bool, error) {
	list := &seamarkv1alpha1.ProbePlanList{}
	if err := s.Client.List(ctx, list); err != nil {
		return false, err
	}
	for _, slice := range list.Items {
		for _, p := range slice.Pods {
			if p.UID != string(pod.UID) || !hasProbe(p, probe) {
				continue
			}
			plan := &appsv1alpha1.NodePodProbe{}
			if err := s.Client.Get(ctx, ctrl.ObjectKey{Name: slice.NodeName}, plan); err != nil {
				return false, err
			}
			return !slices.Contains(plan.Spec.RemovedPods, p.UID), nil
		}
	}
	return false, nil
}

func hasProbe(pod appsv1alpha1.PodProbe, name string) bool {
	return slices.ContainsFunc(pod.Probes, func(probe appsv1alpha1.ContainerProbe) bool { return probe.Name == name })
}
