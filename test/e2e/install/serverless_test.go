// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	configv1alpha1 "github.com/seamark-dev/seamark/api/config/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/provider"
)

const (
	hook      = configv1alpha1.DefaultWebhookName
	condition = "game.io/idle"
)

// TestServerless enables the feature gate, runs pods on a provider, and follows their probes from
// creation to deletion of the marker.
func TestServerless(t *testing.T) {
	s := newSuite(t)
	s.helm(append(append([]string{"upgrade", release, "charts/seamark"}, s.installArgs()...),
		"--set", "featureGates.EnablePodProbeMarkerOnServerless=true",
		// The default is too short for a loaded machine.
		"--set", "serverless.webhook.timeoutSeconds=20")...)
	p := s.provide("virtual-" + s.Namespace)
	s.Eventually("the API server trusts the webhook", s.trusted)

	idle, other := filepath.Join(t.TempDir(), "idle"), filepath.Join(t.TempDir(), "other")
	s.createIdleMarker(idle)
	annotation := s.createAnnotated(p)
	if !strings.Contains(annotation, idle) || strings.Contains(annotation, "markerPolicy") {
		t.Errorf("the provider sees the annotation %s", annotation)
	}

	// The marks follow the provider's condition in both directions.
	s.Eventually("a busy pod", s.podIs("first", corev1.ConditionFalse, map[string]string{"busy": "true"}))
	cluster.Must(t, os.WriteFile(idle, []byte("no match"), 0o600))
	s.Eventually("an idle pod", s.podIs("first", corev1.ConditionTrue, map[string]string{"idle": "true"}))
	cluster.Must(t, os.Remove(idle))
	s.Eventually("a busy pod again", s.podIs("first", corev1.ConditionFalse, map[string]string{"busy": "true"}))

	// An edited marker reaches the provider.
	cluster.Must(t, os.WriteFile(other, nil, 0o600))
	marker := &v1alpha1.PodProbeMarker{}
	cluster.Must(t, s.Client.Get(t.Context(), s.Key("game"), marker))
	edited := marker.DeepCopy()
	edited.Spec.Probes[0].Probe.Exec.Command = []string{"cat", other}
	cluster.Must(t, s.Client.Patch(t.Context(), edited, client.MergeFrom(marker)))
	s.Eventually("an idle pod, after the edit", s.podIs("first", corev1.ConditionTrue, map[string]string{"idle": "true"}))

	s.createWithoutWebhook(p)

	cluster.Must(t, s.Client.Delete(t.Context(), marker))
	s.Eventually("the marker is gone", func(ctx context.Context) error {
		if err := s.Client.Get(ctx, s.Key("game"), &v1alpha1.PodProbeMarker{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("error %w, want not found", err)
		}
		return nil
	})
	// All annotations and marks are removed with the marker. The condition belongs to the provider.
	for _, name := range []string{"first", "missed"} {
		pod := &corev1.Pod{}
		cluster.Must(t, s.Client.Get(t.Context(), s.Key(name), pod))
		if len(pod.Annotations) > 0 || pod.Labels["idle"] != "" || pod.Labels["busy"] != "" {
			t.Errorf("the marker is gone, but pod %s has labels %v and annotations %v", name, pod.Labels, pod.Annotations)
		}
	}
}

// provide runs a provider until the test ends.
func (s *suite) provide(node string) *provider.Provider {
	s.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	cluster.Must(s, err)
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	cluster.Must(s, err)
	p := provider.New(clientset, node)
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	s.Cleanup(func() {
		// Delete the pods before their provider: they can't end without it.
		err := s.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.Namespace))
		none := func(ctx context.Context) (bool, error) {
			var pods corev1.PodList
			err := s.Client.List(ctx, &pods, client.InNamespace(s.Namespace))
			return len(pods.Items) == 0, err
		}
		err = errors.Join(err, wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, cluster.Timeout, true, none))
		stop()
		if err := errors.Join(err, <-done); err != nil {
			s.Errorf("stop the provider: %v", err)
		}
	})
	return p
}

func (s *suite) trusted(ctx context.Context) error {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: hook}, configuration); err != nil {
		return err
	}
	if len(configuration.Webhooks[0].ClientConfig.CABundle) == 0 {
		return errors.New("no CA certificate yet")
	}
	return nil
}

// createIdleMarker creates a marker whose probe succeeds while the file exists.
func (s *suite) createIdleMarker(file string) {
	s.Helper()
	policy := func(state v1alpha1.ProbeState, label string) v1alpha1.ProbeMarkerPolicy {
		return v1alpha1.ProbeMarkerPolicy{State: state, Labels: map[string]string{label: "true"}}
	}
	cluster.Must(s, s.Client.Create(s.Context(), &v1alpha1.PodProbeMarker{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "game"},
		Spec: v1alpha1.PodProbeMarkerSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "game"}},
			Probes: []v1alpha1.PodContainerProbe{{
				Name: "idle", ContainerName: "main", PodConditionType: condition,
				Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"cat", file}}},
					PeriodSeconds: 1,
				}},
				MarkerPolicy: []v1alpha1.ProbeMarkerPolicy{policy(v1alpha1.ProbeSucceeded, "idle"), policy(v1alpha1.ProbeFailed, "busy")},
			}},
		},
	}))
}

// virtualPod returns a pod that the scheduler binds to the provider's node.
func (s *suite) virtualPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"app": "game"}},
		Spec: corev1.PodSpec{
			Containers:   []corev1.Container{{Name: "main", Image: "example.com/never-pulled:1"}},
			NodeSelector: map[string]string{v1alpha1.NodeTypeLabel: v1alpha1.NodeTypeVirtualKubelet, corev1.LabelHostname: "virtual-" + s.Namespace},
			Tolerations:  []corev1.Toleration{{Key: provider.Taint, Operator: corev1.TolerationOpExists}},
		},
	}
}

// createAnnotated creates the pod first and returns its annotation, which the webhook adds. Before
// that, it waits until every manager knows the marker and the node.
func (s *suite) createAnnotated(p *provider.Provider) string {
	s.Helper()
	inARow := 0
	s.Eventually("the webhook annotates ten pods in a row", func(ctx context.Context) error {
		pod := s.virtualPod("trial")
		if err := s.Client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey] == "" {
			inARow = 0
		} else {
			inARow++
		}
		if inARow < 10 {
			return fmt.Errorf("%d in a row", inARow)
		}
		return nil
	})
	pod := s.virtualPod("first")
	cluster.Must(s, s.Client.Create(s.Context(), pod))
	annotation := pod.Annotations[v1alpha1.PodProbeMarkerAnnotationKey]
	if annotation == "" || pod.Annotations[v1alpha1.PodProbeMarkerListAnnotationKey] != "game" {
		s.Errorf("the new pod has the annotations %v", pod.Annotations)
	}
	s.Eventually("the provider sees the pod as created", func(context.Context) error {
		if seen, met := p.FirstSeen(pod.UID); !met || seen != annotation {
			return fmt.Errorf("seen: %t, with annotation %q", met, seen)
		}
		return nil
	})
	return annotation
}

// createWithoutWebhook creates a pod while the webhook is not called.
func (s *suite) createWithoutWebhook(p *provider.Provider) {
	s.Helper()
	cluster.Must(s, s.Client.Delete(s.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hook}}))
	s.Eventually("the webhook is not called", func(ctx context.Context) error {
		pod := s.virtualPod("trial")
		if err := s.Client.Create(ctx, pod, client.DryRunAll); err != nil || len(pod.Annotations) > 0 {
			return fmt.Errorf("error %w, annotations %v", err, pod.Annotations)
		}
		return nil
	})
	pod := s.virtualPod("missed")
	cluster.Must(s, s.Client.Create(s.Context(), pod))
	s.Eventually("a pod that the webhook missed is idle", s.podIs("missed", corev1.ConditionTrue, map[string]string{"idle": "true"}))
	if seen, met := p.FirstSeen(pod.UID); !met || seen != "" {
		s.Errorf("the provider saw the pod: %t, with annotation %q", met, seen)
	}
}

// podIs returns a check of the pod's condition and of its labels of the marker.
func (s *suite) podIs(name string, want corev1.ConditionStatus, labels map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, s.Key(name), pod); err != nil {
			return err
		}
		var got corev1.ConditionStatus
		for _, c := range pod.Status.Conditions {
			if string(c.Type) == condition {
				got = c.Status
			}
		}
		if got != want || pod.Labels["idle"] != labels["idle"] || pod.Labels["busy"] != labels["busy"] {
			return fmt.Errorf("pod %s: condition %q and labels %v, want %q and %v", name, got, pod.Labels, want, labels)
		}
		for _, entry := range pod.ManagedFields {
			if entry.Manager == v1alpha1.FieldManager && strings.Contains(entry.FieldsV1.GetRawString(), "f:conditions") {
				return fmt.Errorf("pod %s: Seamark owns conditions: %s", name, entry.FieldsV1.GetRawString())
			}
		}
		return nil
	}
}
