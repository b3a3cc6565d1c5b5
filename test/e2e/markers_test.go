// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/test/await"
	"github.com/seamark-dev/seamark/test/e2e/cluster"
)

func TestMarkersWithTheSameKey(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "contested"}
	succeeded := appsv1alpha1.ProbeSucceeded
	s.Create(newPod("contested", idle, labels))
	s.running("contested")
	s.Create(
		newMarker("a-first", labels,
			newProbe("one", shell("true"), condition("test.dev/one"), labelled(succeeded, map[string]string{"owner": "a-one", "a": "yes"})),
			newProbe("two", shell("true"), condition("test.dev/two"), labelled(succeeded, map[string]string{"owner": "a-two"}))),
		newMarker("b-second", labels,
			newProbe("one", shell("true"), condition("test.dev/one"), labelled(succeeded, map[string]string{"owner": "b-one", "b": "yes"}))))

	s.podIs("contested", hasLabel("owner", "a-one"), hasLabel("a", "yes"), hasLabel("b", "yes"),
		hasCondition("test.dev/one", corev1.ConditionTrue), hasCondition("test.dev/two", corev1.ConditionTrue))
	s.Eventually("the conflicts are reported", func(ctx context.Context) error {
		if err := s.markerHas(ctx, "a-first", appsv1alpha1.ConditionMarksExclusive, "owner", "two", "one"); err != nil {
			return err
		}
		return s.markerHas(ctx, "b-second", appsv1alpha1.ConditionMarksExclusive, "owner", "test.dev/one", "a-first")
	})
	before := testMarks(s.getPod("contested"))
	s.Never(5*time.Second, "a mark changed", func(context.Context) error {
		if diff := cmp.Diff(before, testMarks(s.getPod("contested"))); diff != "" {
			return fmt.Errorf("the marks changed (-before +after):\n%s", diff)
		}
		return nil
	})

	cluster.Must(t, s.Client.Delete(t.Context(), newMarkerNamed(s, "a-first")))
	s.podIs("contested", hasLabel("owner", "b-one"), hasLabel("b", "yes"), lacksLabel("a"),
		hasCondition("test.dev/one", corev1.ConditionTrue), lacksCondition("test.dev/two"))
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

func TestMarkerEdits(t *testing.T) {
	s := newSuite(t)
	labels := map[string]string{"app": "edited"}
	s.Create(newTarget("target", labels), newPod("edited", idle, labels))
	s.running("edited", "target")
	state := func(labels map[string]string) func(*appsv1alpha1.PodContainerProbe) {
		return labelled(appsv1alpha1.ProbeSucceeded, labels)
	}
	// The first probe is due once an hour, so an edit must take effect before the next run.
	s.Create(newMarker("edited", labels,
		newProbe("slow", shell("echo old"), condition("test.dev/slow"), every(3600)),
		newProbe("keyed", shell("true"), state(map[string]string{"old-key": "true"})),
		newProbe("leaving", shell("true"), condition("test.dev/leaving"), state(map[string]string{"leaving": "true"}))))
	s.podIs("edited", hasCondition("test.dev/slow", corev1.ConditionTrue, "old"),
		hasLabel("old-key", "true"), hasLabel("leaving", "true"), hasCondition("test.dev/leaving", corev1.ConditionTrue))
	// Less than any wait for a period, a resynchronization or a retry, and enough for a slow machine.
	soon := await.Poll{Interval: 50 * time.Millisecond, Timeout: 10 * time.Second}
	edited := func(what string, change func(*appsv1alpha1.PodProbeMarkerSpec), wants ...expectation) {
		t.Helper()
		s.edit("edited", func(m *appsv1alpha1.PodProbeMarker) { change(&m.Spec) })
		soon.Success(t, what, s.meets("edited", wants...))
	}

	edited("the period", func(spec *appsv1alpha1.PodProbeMarkerSpec) {
		spec.Probes[0].Probe.PeriodSeconds = 1
		spec.Probes[0].Probe.Exec.Command[2] = "date +%s; echo old"
	}, hasCondition("test.dev/slow", corev1.ConditionTrue, "\nold"))
	first := findCondition(s.getPod("edited"), "test.dev/slow").Message
	soon.Success(t, "the shorter period is in effect: the message keeps changing", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := s.Client.Get(ctx, s.Key("edited"), pod); err != nil {
			return err
		}
		if c := findCondition(pod, "test.dev/slow"); c == nil || c.Message == first {
			return fmt.Errorf("the message is still %q", first)
		}
		return nil
	})
	edited("the command", func(spec *appsv1alpha1.PodProbeMarkerSpec) {
		spec.Probes[0].Probe.Exec.Command[2] = "echo new; exit 1"
	}, hasCondition("test.dev/slow", corev1.ConditionFalse, "new"))
	edited("the handler", func(spec *appsv1alpha1.PodProbeMarkerSpec) {
		spec.Probes[0].Probe.ProbeHandler = httpGet(intstr.FromInt32(8080), "/ok")
	}, hasCondition("test.dev/slow", corev1.ConditionFalse, "refused"))
	s.podIs("target", hasCondition("test.dev/slow", corev1.ConditionTrue, "statuscode: 200"))
	edited("the policy's keys", func(spec *appsv1alpha1.PodProbeMarkerSpec) {
		spec.Probes[1].MarkerPolicy[0].Labels = map[string]string{"new-key": "true"}
	}, hasLabel("new-key", "true"), lacksLabel("old-key"))
	edited("a probe removed, one added", func(spec *appsv1alpha1.PodProbeMarkerSpec) {
		spec.Probes[2] = newProbe("coming", shell("true"), condition("test.dev/coming"), state(map[string]string{"coming": "true"}))
	}, lacksLabel("leaving"), lacksCondition("test.dev/leaving"), hasLabel("coming", "true"), hasCondition("test.dev/coming", corev1.ConditionTrue))
	cluster.Must(t, s.meets("edited", hasLabel("new-key", "true"), hasLabel("app", "edited"))(t.Context()))
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
	if diff := cmp.Diff(want, stop()); diff != "" {
		t.Errorf("values of the marks (-want +got):\n%s", diff)
	}
}

func TestPodStopsMatching(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "leaving", "keep": "yes"}
	s.Create(newPod("leaving", idle, labels), newMarker("leaving", map[string]string{"app": "leaving"},
		newProbe("run", shell("echo run >>/tmp/runs"), condition("test.dev/run"),
			labelled(appsv1alpha1.ProbeSucceeded, map[string]string{"marked": "true"}))))
	s.podIs("leaving", hasCondition("test.dev/run", corev1.ConditionTrue), hasLabel("marked", "true"))

	pod := s.getPod("leaving")
	base := pod.DeepCopy()
	pod.Labels["app"] = "gone"
	cluster.Must(t, s.Client.Patch(t.Context(), pod, ctrl.MergeFrom(base)))
	s.podIs("leaving", lacksCondition("test.dev/run"), lacksLabel("marked"), hasLabel("app", "gone"), hasLabel("keep", "yes"))
	s.Eventually("the pod is removed from the plan", func(ctx context.Context) error {
		if there, err := s.planned(ctx, pod, "leaving#run"); err != nil || there {
			return fmt.Errorf("planned: %t, %w", there, err)
		}
		return nil
	})
	s.stopsGrowing("leaving", "/tmp/runs")
}

// stopsGrowing waits until a file to which a probe appends every second keeps its size for five
// seconds.
func (s *suite) stopsGrowing(pod, file string) {
	s.Helper()
	size, since := "", time.Now()
	s.Eventually("the probe of "+pod+" stopped", func(context.Context) error {
		now := strings.TrimSpace(s.exec(pod, "wc -c <"+file))
		if now != size {
			size, since = now, time.Now()
		}
		if still := time.Since(since); still < 5*time.Second {
			return fmt.Errorf("%s grew to %s bytes %s ago", file, size, still)
		}
		return nil
	})
}

// TestMarkerDeleted deletes a marker whose name is a suffix of another marker's name.
func TestMarkerDeleted(t *testing.T) {
	t.Parallel()
	s := newSuite(t)
	labels := map[string]string{"app": "twice"}
	pods := []string{"twice-0", "twice-1", "twice-2"}
	for _, name := range pods {
		s.Create(newPod(name, idle, labels))
	}
	s.running(pods...)
	for _, name := range []string{"web", "my-web"} {
		s.Create(newMarker(name, labels, newProbe("run", shell("echo run >>/tmp/"+name), condition("test.dev/"+name),
			labelled(appsv1alpha1.ProbeSucceeded, map[string]string{name: "true"}))))
	}
	for _, name := range pods {
		s.podIs(name, hasLabel("web", "true"), hasLabel("my-web", "true"),
			hasCondition("test.dev/web", corev1.ConditionTrue), hasCondition("test.dev/my-web", corev1.ConditionTrue))
	}

	cluster.Must(t, s.Client.Delete(t.Context(), newMarkerNamed(s, "web")))
	s.Eventually("the marker is gone", func(ctx context.Context) error {
		err := s.Client.Get(ctx, s.Key("web"), &appsv1alpha1.PodProbeMarker{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the marker still exists (error: %w)", err)
	})
	for _, name := range pods {
		// The marker is removed after its marks.
		cluster.Must(t, s.meets(name, lacksLabel("web"), lacksCondition("test.dev/web"),
			hasLabel("my-web", "true"), hasCondition("test.dev/my-web", corev1.ConditionTrue))(t.Context()))
	}
	s.stopsGrowing("twice-0", "/tmp/web")
	before := s.exec("twice-0", "wc -c </tmp/my-web")
	s.Eventually("the other marker's probe continues", func(context.Context) error {
		if now := s.exec("twice-0", "wc -c </tmp/my-web"); now == before {
			return fmt.Errorf("/tmp/my-web still has %s bytes", now)
		}
		return nil
	})
}
