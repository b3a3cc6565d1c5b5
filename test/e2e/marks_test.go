// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/follow"
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

func (s *suite) edit(name string, change func(*v1alpha1.PodProbeMarker)) {
	s.Helper()
	marker := &v1alpha1.PodProbeMarker{}
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
			plan := &v1alpha1.NodePodProbe{}
			if err := s.Client.Get(ctx, ctrl.ObjectKey{Name: slice.NodeName}, plan); err != nil {
				return false, err
			}
			return !slices.Contains(plan.Spec.RemovedPods, p.UID), nil
		}
	}
	return false, nil
}

func hasProbe(pod v1alpha1.PodProbe, name string) bool {
	return slices.ContainsFunc(pod.Probes, func(probe v1alpha1.ContainerProbe) bool { return probe.Name == name })
}

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
		labelled(v1alpha1.ProbeSucceeded, map[string]string{"role": "primary"}))))
	s.podIs("primary", hasLabel("role", "primary"), hasCondition("test.dev/primary", corev1.ConditionTrue, "typo"))
	stop := s.watchMarks()
	s.edit("role", func(m *v1alpha1.PodProbeMarker) {
		m.Spec.Probes[0].Probe.Exec.Command[2] = "sleep 2; echo fixed"
	})
	s.podIs("primary", hasLabel("role", "primary"), hasCondition("test.dev/primary", corev1.ConditionTrue, "fixed"))
	want := map[string][]string{
		"primary label app": {"primary"}, "primary label role": {"primary"}, "primary condition test.dev/primary": {"True"},
	}
	expect.Equal(t, "values of the marks", want, stop())
}
