// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package order

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/seamark-dev/seamark/api/apps/pub"
)

// now is the time of the tests.
func now() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// ago returns a time before now.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// pod returns a pod that has been created and ready for an hour, on a node of its own, and changes it.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{NodeName: "node-of-" + name},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)},
			},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func node(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = name } }

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = ago(d) }
}

func cost(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[corev1.PodDeletionCost] = value }
}

func restarts(counts ...int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, n := range counts {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{RestartCount: n})
		}
	}
}

func created(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = ago(d) }
}

func entered(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[pub.LifecycleTimestampKey] = ago(d).Format(time.RFC3339) }
}

func label(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: status, LastTransitionTime: ago(since),
		})
	}
}

func names(pods []*corev1.Pod) []string {
	result := make([]string, len(pods))
	for i, p := range pods {
		result[i] = p.Name
	}
	return result
}
