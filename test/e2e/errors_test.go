// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
)

// TestProbeThatCannotRun has a typo in the command of one probe. The pod gets a Warning event and
// no marks of the probe, and the marker's status names the pod, until the typo is fixed.
func TestProbeThatCannotRun(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "typo"}
	typo := newProbe("typo", corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/ture"}}}, condition("test.dev/typo"), every(2))
	s.Create(newPod("typo", idle, labels),
		newMarker("typo", labels, typo, newProbe("fine", shell("true"), condition("test.dev/fine"), every(2))))
	s.podIs("typo", hasCondition("test.dev/fine", corev1.ConditionTrue))
	s.Eventually("the pod has an event", s.hasProbeError("typo", "typo#typo", "/bin/ture", "no such file or directory"))
	s.Eventually("the marker reports the error", func(ctx context.Context) error {
		return s.markerHas(ctx, "typo", appsv1alpha1.ConditionProbesResolved, `"typo"`, "cannot be run", "1 of 1 matched pods, such as typo", "/bin/ture")
	})
	s.podIs("typo", lacksCondition("test.dev/typo"))

	s.edit("typo", func(marker *appsv1alpha1.PodProbeMarker) {
		marker.Spec.Probes[0].Probe.Exec.Command = []string{"/bin/true"}
	})
	s.podIs("typo", hasCondition("test.dev/typo", corev1.ConditionTrue))
	s.Eventually("the marker reports no error", func(ctx context.Context) error {
		return s.markerResolved(ctx, "typo")
	})
}

// markerResolved expects that all probes of a marker can run.
func (s *suite) markerResolved(ctx context.Context, name string) error {
	marker := &appsv1alpha1.PodProbeMarker{}
	if err := s.Client.Get(ctx, s.Key(name), marker); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(marker.Status.Conditions, appsv1alpha1.ConditionProbesResolved) {
		return fmt.Errorf("conditions of marker %s: %v", name, marker.Status.Conditions)
	}
	return nil
}

// hasProbeError expects one Warning event about a probe that cannot run.
func (s *suite) hasProbeError(pod string, parts ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := s.Client.List(ctx, events, ctrl.InNamespace(s.Namespace)); err != nil {
			return err
		}
		var messages []string
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Name == pod && e.Reason == appsv1alpha1.EventReasonProbeError && e.Type == corev1.EventTypeWarning {
				messages = append(messages, fmt.Sprintf("%s (%d times)", e.Message, e.Count))
			}
		}
		if len(messages) != 1 || !strings.Contains(messages[0], "(1 times)") {
			return fmt.Errorf("pod %s has the events %q, want one", pod, messages)
		}
		for _, part := range parts {
			if !strings.Contains(messages[0], part) {
				return fmt.Errorf("event of pod %s: %q lacks %q", pod, messages[0], part)
			}
		}
		return nil
	}
}

// TestUnendedExec has a command that exits at once, but leaves a child that keeps its output
// open, so that the runtime never ends the run. The probe fails, as for the kubelet, but the
// command is not started again. When the child ends, the probe runs again.
func TestUnendedExec(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "unended"}
	const command = "echo run >>/tmp/runs; [ -e /tmp/fixed ] || setsid sleep 987654 & exit 0"
	s.Create(newPod("unended", idle, labels),
		newMarker("unended", labels, newProbe("unended", shell(command), condition("test.dev/unended"), every(1), timeout(1), thresholds(1, 3))))
	s.podIs("unended", hasCondition("test.dev/unended", corev1.ConditionFalse, "timed out"))
	s.Eventually("the marker reports the run", func(ctx context.Context) error {
		return s.markerHas(ctx, "unended", appsv1alpha1.ConditionProbesResolved, "has not ended", "1 of 1 matched pods")
	})
	s.Eventually("the pod has an event", s.hasProbeError("unended", "unended#unended", "not ended"))
	s.Never(15*time.Second, "the command ran again", func(context.Context) error {
		runs := strings.Count(s.exec("unended", "cat /tmp/runs"), "run")
		return await.ErrorIf(runs != 1, "the command ran %d times, want once", runs)
	})

	s.exec("unended", "touch /tmp/fixed; kill -9 $(pidof sleep | tr ' ' '\\n' | while read pid; do tr '\\0' ' ' </proc/$pid/cmdline | grep -q 987654 && echo $pid; done)")
	s.podIs("unended", hasCondition("test.dev/unended", corev1.ConditionTrue))
	s.Eventually("the marker reports no error", func(ctx context.Context) error {
		return s.markerResolved(ctx, "unended")
	})
}
