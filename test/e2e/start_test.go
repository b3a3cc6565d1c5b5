// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/expect"
)

// slowStart is how long a container of TestContainerStart does not start.
const slowStart = 15 * time.Second

// TestContainerStart covers containers that don't run: one without an image and one that waits for
// a volume have no state, one whose program is missing and one in a crash loop have failed.
func TestContainerStart(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "starting"}
	image, volume := newPod("no-image", idle, labels), newPod("no-volume", idle, labels)
	program, crash := newPod("no-program", idle, labels), newPod("crash", "exit 3", labels)
	image.Spec.Containers[0].Image = "docker.io/library/no-such-image:1"
	image.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	program.Spec.Containers[0].Command = []string{"/no/such/program"}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	volume.Spec.Volumes = []corev1.Volume{{Name: "late", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap.Name}},
	}}}
	volume.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "late", MountPath: "/late"}}
	s.Create(image, volume, program, crash, newMarker("starting", labels, newProbe("alive", shell("true"), condition("test.dev/alive"),
		labelled(v1alpha1.ProbeSucceeded, map[string]string{"alive": "true"}),
		labelled(v1alpha1.ProbeFailed, map[string]string{"alive": "false"}))))

	for _, pod := range []string{program.Name, crash.Name} {
		s.podIs(pod, hasCondition("test.dev/alive", corev1.ConditionFalse, "not running"), hasLabel("alive", "false"))
	}
	s.podIs(crash.Name, hasCondition("test.dev/alive", corev1.ConditionFalse, "exited with code 3"))
	for _, pod := range []*corev1.Pod{image, volume} {
		s.Eventually("pod "+pod.Name+" is planned", func(ctx context.Context) error {
			if planned, err := s.planned(ctx, pod, "starting#alive"); err != nil || !planned {
				return fmt.Errorf("planned: %t, %w", planned, err)
			}
			return nil
		})
	}
	s.Never(slowStart, "a container that has never run has a state", func(ctx context.Context) error {
		for _, pod := range []string{image.Name, volume.Name} {
			if err := s.unmarked(ctx, pod); err != nil {
				return err
			}
		}
		return nil
	})

	s.Create(configMap)
	if first := s.history(volume.Name, "test.dev/alive", 1)[0]; first != "True: " {
		t.Errorf("the first condition after a slow start is %q, want True", first)
	}
	s.podIs(volume.Name, hasLabel("alive", "true"))
	expect.Success(t, s.unmarked(t.Context(), image.Name))
}

// unmarked expects that a pod has neither a mark nor an event of the probe.
func (s *suite) unmarked(ctx context.Context, name string) error {
	if err := s.meets(name, lacksCondition("test.dev/alive"), lacksLabel("alive"))(ctx); err != nil {
		return err
	}
	events := &corev1.EventList{}
	if err := s.Client.List(ctx, events, ctrl.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for i := range events.Items {
		if e := &events.Items[i]; e.InvolvedObject.Name == name && e.Reason == v1alpha1.EventReasonProbeFailed {
			return fmt.Errorf("pod %s has the event %s: %s", name, e.Reason, e.Message)
		}
	}
	return nil
}

// TestStaticPod probes a static pod. Its object is a mirror pod, which has another UID than the
// containers, and the kubelet must not recreate it because of the marks.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "static"}
	s.Create(newMarker("static", labels,
		newProbe("alive", shell(sayAndCheck), condition("test.dev/alive"),
			labelled(v1alpha1.ProbeSucceeded, map[string]string{"alive": "true"})),
		newProbe("socket", tcpSocket(intstr.FromInt32(47080)), condition("test.dev/socket"))))
	node := s.AnyNode()
	s.RunStatic(node, newPod("static", "touch /tmp/ok; httpd -p 47080; "+idle, labels))
	name := "static-" + node
	marked := []expectation{
		hasCondition("test.dev/alive", corev1.ConditionTrue), hasCondition("test.dev/socket", corev1.ConditionTrue),
		hasLabel("alive", "true"),
	}
	s.Eventually("the mirror pod is marked", s.meets(name, marked...))
	before := s.Pod(name)
	if _, mirror := before.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		t.Fatalf("pod %s is not a mirror pod: annotations %v", name, before.Annotations)
	}

	s.exec(name, "rm /tmp/ok")
	s.podIs(name, hasCondition("test.dev/alive", corev1.ConditionFalse), hasCondition("test.dev/socket", corev1.ConditionTrue), lacksLabel("alive"))
	// The command returns before the container ends, which would kill it.
	s.exec(name, "(sleep 1; kill 1) >/dev/null 2>&1 &")
	s.Eventually("the container restarts and is marked", s.meets(name, append(marked, restarted)...))
	if after := s.Pod(name); after.UID != before.UID {
		t.Errorf("the mirror pod was recreated: UID %s, before %s", after.UID, before.UID)
	}
}
