// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
)

// testMarks returns the pod's labels and the conditions of the tests, by type.
func testMarks(pod *corev1.Pod) map[string]any {
	marks := map[string]any{}
	for key, value := range pod.Labels {
		marks["label "+key] = value
	}
	for _, c := range pod.Status.Conditions {
		if strings.HasPrefix(string(c.Type), "test.dev/") {
			marks["condition "+string(c.Type)] = c
		}
	}
	return marks
}

// watchMarks watches the pods until the returned function is called. The function returns the
// successive values of each mark, by "pod mark", with the marks of testMarks. A mark that a pod has lost has the
// value "-".
func (s *suite) watchMarks() (stop func() map[string][]string) {
	s.Helper()
	values := map[string][]string{}
	see := func(pod *corev1.Pod) {
		now := map[string]string{}
		for mark, value := range testMarks(pod) {
			if c, is := value.(corev1.PodCondition); is {
				value = string(c.Status)
			}
			now[pod.Name+" "+mark] = fmt.Sprint(value)
		}
		for mark := range values {
			if _, has := now[mark]; !has && len(mark) > len(pod.Name) && mark[:len(pod.Name)+1] == pod.Name+" " {
				now[mark] = "-"
			}
		}
		for mark, value := range now {
			if seen := values[mark]; len(seen) == 0 || seen[len(seen)-1] != value {
				values[mark] = append(seen, value)
			}
		}
	}
	ctx, cancel := context.WithCancel(s.Context())
	wait, err := follow.Objects(ctx, s.Client, &corev1.PodList{}, func(event watch.Event) {
		if pod, isPod := event.Object.(*corev1.Pod); isPod {
			see(pod)
		}
	}, ctrl.InNamespace(s.Namespace))
	if err != nil {
		cancel()
	}
	cluster.Must(s, err)
	return func() map[string][]string {
		cancel()
		cluster.Must(s, wait())
		return values
	}
}

// TestEditedProbeKeepsMarks edits the command of a probe and watches the pod: no mark changes until
// the new command has a result, and none changes after it if the result is the same.
func TestEditedProbeKeepsMarks(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "primary"}
	s.Create(newPod("primary", idle, labels))
	s.running("primary")
	s.Create(newMarker("role", labels, newProbe("role", shell("echo typo"), condition("test.dev/primary"), timeout(10),
		labelled(appsv1alpha1.ProbeSucceeded, map[string]string{"role": "primary"}))))
	s.podIs("primary", hasLabel("role", "primary"), hasCondition("test.dev/primary", corev1.ConditionTrue, "typo"))
	stop := s.watchMarks()
	s.edit("role", func(m *appsv1alpha1.PodProbeMarker) {
		m.Spec.Probes[0].Probe.Exec.Command[2] = "sleep 2; echo fixed"
	})
	s.podIs("primary", hasLabel("role", "primary"), hasCondition("test.dev/primary", corev1.ConditionTrue, "fixed"))
	want := map[string][]string{
		"primary label app": {"primary"}, "primary label role": {"primary"}, "primary condition test.dev/primary": {"True"},
	}
	expect.Equal(t, want, stop(), "values of the marks")
}
