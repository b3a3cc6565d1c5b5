// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// TestStaticPod probes a static pod. Its object is a mirror pod, which has another UID than the
// containers, and the kubelet must not recreate it because of the marks.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "static"}
	s.Create(newMarker("static", labels,
		newProbe("alive", shell(sayAndCheck), condition("test.dev/alive"),
			labelled(appsv1alpha1.ProbeSucceeded, map[string]string{"alive": "true"})),
		newProbe("socket", tcpSocket(intstr.FromInt32(47080)), condition("test.dev/socket"))))
	node := s.AnyNode()
	s.RunStatic(node, newPod("static", "touch /tmp/ok; httpd -p 47080; "+idle, labels))
	name := "static-" + node
	marked := []expectation{
		hasCondition("test.dev/alive", corev1.ConditionTrue), hasCondition("test.dev/socket", corev1.ConditionTrue),
		hasLabel("alive", "true"),
	}
	s.Eventually("the mirror pod is marked", s.meets(name, marked...))
	before := s.getPod(name)
	if _, mirror := before.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		t.Fatalf("pod %s is not a mirror pod: annotations %v", name, before.Annotations)
	}

	s.exec(name, "rm /tmp/ok")
	s.podIs(name, hasCondition("test.dev/alive", corev1.ConditionFalse), hasCondition("test.dev/socket", corev1.ConditionTrue), lacksLabel("alive"))
	// The command returns before the container ends, which would kill it.
	s.exec(name, "(sleep 1; kill 1) >/dev/null 2>&1 &")
	s.Eventually("the container restarts and is marked", s.meets(name, append(marked, restarted)...))
	if after := s.getPod(name); after.UID != before.UID {
		t.Errorf("the mirror pod was recreated: UID %s, before %s", after.UID, before.UID)
	}
}
