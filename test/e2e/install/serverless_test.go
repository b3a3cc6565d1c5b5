// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

const (
	hook      = configv1alpha1.DefaultWebhookName
	condition = "game.io/idle"
)

// serverless creates a pod on a virtual node, writes the condition of its probe as a provider does, and
// deletes the marker.
func (s *suite) serverless() {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "virtual-" + s.Namespace, Labels: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet},
	}}
	cluster.Must(s, s.Client.Create(s.Context(), node))
	s.Cleanup(func() { cluster.Must(s, s.Client.Delete(context.WithoutCancel(s.Context()), node)) })
	s.Eventually("the API server trusts the webhook", s.trusted)
	policy := func(state v1alpha1.ProbeState) v1alpha1.ProbeMarkerPolicy {
		return v1alpha1.ProbeMarkerPolicy{State: state, Labels: map[string]string{"idle": string(state)}}
	}
	marker := &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "game"},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "idle", ContainerName: "main", PodConditionType: condition,
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"is-idle"}}},
				}},
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{policy(v1alpha1.ProbeSucceeded), policy(v1alpha1.ProbeFailed)},
			}},
		},
	}
	cluster.Must(s, s.Client.Create(s.Context(), marker))
	pod := s.createAnnotated(node.Name)
	annotation := pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey]
	if !strings.Contains(annotation, "is-idle") || strings.Contains(annotation, "markerPolicy") || pod.Annotations[v1alpha1.PodProbeMarkerListAnnotationKey] != "game" {
		s.Errorf("the new pod has the annotations %v", pod.Annotations)
	}
	for status, state := range map[corev1.ConditionStatus]v1alpha1.ProbeState{
		corev1.ConditionFalse: v1alpha1.ProbeFailed, corev1.ConditionTrue: v1alpha1.ProbeSucceeded,
	} {
		body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Initialized","status":"True"},{"type":%q,"status":%q}]}}`, condition, status)
		cluster.Must(
			s, s.Client.Status().Patch(s.Context(), pod, client.RawPatch("application/strategic-merge-patch+json", body), client.FieldOwner("provider")),
		)
		s.Eventually("the label follows the condition", s.podIs(pod, string(state)))
	}
	cluster.Must(s, s.Client.Delete(s.Context(), marker))
	s.Eventually("the marker is gone", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(marker), marker); !apierrors.IsNotFound(err) {
			return fmt.Errorf("error %w, want not found", err)
		}
		return nil
	})
	// All annotations and labels are removed with the marker. The condition belongs to the provider.
	cluster.Must(s, s.podIs(pod, "")(s.Context()))
	if len(pod.Annotations) > 0 {
		s.Errorf("the marker is gone, but the pod has the annotations %v", pod.Annotations)
	}
}

func (s *suite) trusted(ctx context.Context) error {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: hook}, configuration); err != nil {
		return err
	}
	return await.ErrorIf(len(configuration.Webhooks[0].ClientConfig.CABundle) == 0, "no CA certificate yet")
}

// createAnnotated creates a pod on the virtual node and returns it with the annotation that the webhook
// adds. Before that, it waits until every manager knows the marker and the node.
func (s *suite) createAnnotated(node string) *corev1.Pod {
	s.Helper()
	newPod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "virtual", Labels: map[string]string{"app": "game"}},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/never-pulled:1"}}},
		}
	}
	inARow := 0
	s.Eventually("the webhook annotates ten pods in a row", func(ctx context.Context) error {
		pod := newPod()
		if err := s.Client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey] == "" {
			inARow = 0
		} else {
			inARow++
		}
		return await.ErrorIf(inARow < 10, "%d in a row", inARow)
	})
	pod := newPod()
	cluster.Must(s, s.Client.Create(s.Context(), pod))
	// No kubelet ends the pod.
	s.Cleanup(func() {
		cluster.Must(s, client.IgnoreNotFound(s.Client.Delete(context.WithoutCancel(s.Context()), pod, client.GracePeriodSeconds(0))))
	})
	return pod
}

// podIs returns a check of the label that the marker sets. It updates the pod.
func (s *suite) podIs(pod *corev1.Pod, label string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Labels["idle"] != label {
			return fmt.Errorf("pod %s has the labels %v, want idle=%s", pod.Name, pod.Labels, label)
		}
		for _, entry := range pod.ManagedFields {
			if entry.Manager == v1alpha1.FieldManager && strings.Contains(entry.FieldsV1.GetRawString(), "f:conditions") {
				return fmt.Errorf("pod %s: Seamark owns conditions: %s", pod.Name, entry.FieldsV1.GetRawString())
			}
		}
		return nil
	}
}
