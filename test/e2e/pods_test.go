// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/exec"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

func TestContainerRestart(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "restarting"}
	s.Create(
		newPod("restarting", "touch /tmp/ok; "+idle, labels),
		newMarker("restarting", labels, newProbe("alive", shell(sayAndCheck), condition("test.dev/alive"),
			labelled(v1alpha1.ProbeSucceeded, map[string]string{"alive": "true"}))))
	s.running("restarting")
	s.podIs("restarting", hasCondition("test.dev/alive", corev1.ConditionTrue), hasLabel("alive", "true"))

	container := s.Pod("restarting").Status.ContainerStatuses[0].ContainerID
	// The end of the container may kill the command before it can exit.
	if _, err := s.tryExec("restarting", "kill 1"); err != nil && !killed(err) {
		t.Fatal(err)
	}
	s.Eventually("the container restarts", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, s.Key("restarting"), pod); err != nil {
			return err
		}
		status := pod.Status.ContainerStatuses[0]
		if status.RestartCount != 1 || status.State.Running == nil || status.ContainerID == container {
			return fmt.Errorf("restarts %d, state %v", status.RestartCount, status.State)
		}
		return nil
	})
	s.podIs("restarting", hasCondition("test.dev/alive", corev1.ConditionTrue), hasLabel("alive", "true"), probedSinceStart("test.dev/alive"))
}

// killed reports whether err is the exit code of a command that SIGKILL ended.
func killed(err error) bool {
	var exit exec.ExitError
	return errors.As(err, &exit) && exit.ExitStatus() == 137
}

// probedSinceStart expects that the condition's last transition is not older than the running
// container.
func probedSinceStart(conditionType string) expectation {
	return func(pod *corev1.Pod) error {
		c := findCondition(pod, conditionType)
		if c == nil || len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("pod %s: condition %v, container statuses %v", pod.Name, c, pod.Status.ContainerStatuses)
		}
		running := pod.Status.ContainerStatuses[0].State.Running
		if c.LastTransitionTime.Before(&running.StartedAt) {
			return fmt.Errorf(
				"pod %s: transition of %s at %s, before the start of the container at %s", pod.Name, conditionType, c.LastTransitionTime, running.StartedAt,
			)
		}
		return nil
	}
}

// TestRecreatedPodWithTheSameName deletes the pod of a StatefulSet: the new pod does not inherit
// the states of the old one.
func TestRecreatedPodWithTheSameName(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "db"}
	pod := newPod("db", "touch /tmp/ok; "+idle, labels)
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	s.Create(set, newMarker("role", labels, newProbe("primary", shell(sayAndCheck), condition("test.dev/primary"),
		labelled(v1alpha1.ProbeSucceeded, map[string]string{"role": "primary"}))))
	s.Eventually("db-0 is marked", s.meets("db-0", hasLabel("role", "primary")))
	old := s.Pod("db-0")

	cluster.Must(t, s.Client.Delete(t.Context(), old))
	s.Eventually("db-0 is recreated and marked", func(ctx context.Context) error {
		if err := s.meets("db-0", hasLabel("role", "primary"), hasCondition("test.dev/primary", corev1.ConditionTrue))(ctx); err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, s.Key("db-0"), pod); err != nil {
			return err
		}
		if pod.UID == old.UID {
			return fmt.Errorf("pod %s is still the old one", pod.Name)
		}
		return probedSinceStart("test.dev/primary")(pod)
	})
	s.Eventually("the old pod is removed from the plan", func(ctx context.Context) error {
		if there, err := s.planned(ctx, old, "role#primary"); err != nil || there {
			return fmt.Errorf("planned: %t, %w", there, err)
		}
		return nil
	})
}

func TestHostNetworkPod(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "host"}
	pod := newPod("host", "httpd -p 47070; "+idle, labels)
	pod.Spec.HostNetwork = true
	s.Create(pod, newMarker("host", labels,
		newProbe("socket", tcpSocket(intstr.FromInt32(47070)), condition("test.dev/socket")),
		newProbe("refused", tcpSocket(intstr.FromInt32(47071)), condition("test.dev/refused"))))
	s.podIs("host", hasCondition("test.dev/socket", corev1.ConditionTrue), hasCondition("test.dev/refused", corev1.ConditionFalse))
}

func TestRestartableInitContainer(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "sidecar"}
	pod := newPod("sidecar", idle, labels)
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "plain", Image: cluster.BusyboxImage, Command: []string{"true"}},
		{Name: "proxy", Image: cluster.BusyboxImage, Command: []string{"sh", "-c", "echo proxy >/tmp/say; touch /tmp/ok; " + idle},
			RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
	}
	s.Create(pod, newMarker("sidecar", labels,
		newProbe("proxy", shell(sayAndCheck), condition("test.dev/proxy"), in("proxy")),
		newProbe("plain", shell("true"), condition("test.dev/plain"), in("plain"))))
	s.podIs("sidecar", hasCondition("test.dev/proxy", corev1.ConditionTrue, "proxy"), lacksCondition("test.dev/plain"))
	s.Eventually("the marker reports that the plain init container can't be probed", func(ctx context.Context) error {
		return s.markerHas(ctx, "sidecar", v1alpha1.ConditionProbesResolved, "plain")
	})
}

// markerHas checks that the marker's condition is False and its message contains all parts.
func (s *suite) markerHas(ctx context.Context, name, conditionType string, parts ...string) error {
	marker := &v1alpha1.PodProbeMarker{}
	if err := s.Client.Get(ctx, s.Key(name), marker); err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "marker " + name}}
	for _, c := range marker.Status.Conditions {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(c.Type), Status: corev1.ConditionStatus(c.Status), Message: c.Message})
	}
	return hasCondition(conditionType, corev1.ConditionFalse, parts...)(pod)
}

// lacksAnnotation expects no annotation with the key.
func lacksAnnotation(key string) expectation {
	return func(pod *corev1.Pod) error {
		got, has := pod.Annotations[key]
		return await.ErrorIf(has, "pod %s still has annotation %s=%s", pod.Name, key, got)
	}
}

func TestReadinessGate(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "gated"}
	pod := newPod("gated", idle, labels)
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "test.dev/open"}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "gated"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	s.Create(service, pod, newMarker("gated", labels, newProbe("open", shell(sayAndCheck), condition("test.dev/open"))))
	s.running("gated")

	s.podIs("gated", hasCondition("test.dev/open", corev1.ConditionFalse), hasCondition("Ready", corev1.ConditionFalse))
	s.Eventually("the endpoint is not ready", s.endpointReady("gated", false))
	s.exec("gated", "touch /tmp/ok")
	s.podIs("gated", hasCondition("test.dev/open", corev1.ConditionTrue), hasCondition("Ready", corev1.ConditionTrue))
	s.Eventually("the endpoint is ready", s.endpointReady("gated", true))
	s.exec("gated", "rm /tmp/ok")
	s.Eventually("the endpoint is not ready again", s.endpointReady("gated", false))
}

// endpointReady returns a check that the service has one endpoint, which is ready or not as wanted.
func (s *suite) endpointReady(service string, want bool) func(context.Context) error {
	return func(ctx context.Context) error {
		slices := &discoveryv1.EndpointSliceList{}
		if err := s.Client.List(ctx, slices, ctrl.InNamespace(s.Namespace), ctrl.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
			return err
		}
		found := 0
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				found++
				if got := ptr.Deref(endpoint.Conditions.Ready, true); got != want {
					return fmt.Errorf("ready is %t, want %t", got, want)
				}
			}
		}
		return await.ErrorIf(found != 1, "service %s has %d endpoints, want one", service, found)
	}
}
