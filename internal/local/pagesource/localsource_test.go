// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pagesource_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/local/pagesource"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

var start = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// after returns the time so many seconds after the start.
func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func marker() v1alpha1.PodProbeMarker {
	return *builders.Marker("default", "m").Selector("app", "web").Probe(builders.Probe("p").Container("main").Condition("example.com/ready").
		Label(v1alpha1.ProbeSucceeded, "role", "primary")).Build()
}

func change(seconds int, state v1alpha1.ProbeState, transition bool, message string) local.Change {
	return local.Change{Kind: local.KindProbe, Time: after(seconds), Namespace: "default", Pod: "web", Probe: &local.ProbeChange{
		Type: local.ProbeMarker, Marker: "m", Name: "p", Container: "main", State: state, Message: message, Ran: true, Transition: transition,
		LastTransition: after(seconds),
	}}
}

func failing(seconds int, state v1alpha1.ProbeState, message string) local.Change {
	c := change(seconds, state, false, "")
	c.Probe.Error = message
	return c
}

// view returns a pod in which the last change has just occurred.
func view(last local.Change) local.PodView {
	pod := builders.Pod("default", "web").Label("app", "web").Label("role", "primary").
		Condition(corev1.PodCondition{Type: "example.com/ready", Status: corev1.ConditionTrue}).Build()
	pod.CreationTimestamp = metav1.NewTime(start)
	return local.PodView{Pod: pod, Probes: []local.ProbeChange{{Type: local.ProbeReadiness, Container: "main"}, *last.Probe},
		MarkedLabels: []string{"role"}, MarkedConditions: []string{"example.com/ready"}}
}

func source(views ...local.PodView) *pagesource.Source {
	return pagesource.New([]v1alpha1.PodProbeMarker{marker()}, func() []local.PodView { return views }, func() time.Time { return after(120) })
}

func TestPods(t *testing.T) {
	running := view(change(30, v1alpha1.ProbeSucceeded, true, "fine"))
	ended := view(change(30, v1alpha1.ProbeFailed, true, ""))
	ended.Pod.Status.Phase = corev1.PodFailed
	pending := view(change(30, "", false, ""))
	pending.Pod = builders.Pod("default", "web").Label("app", "web").Initialized(corev1.ConditionFalse).Build()
	pending.Probes, pending.MarkedLabels = nil, nil
	without := view(change(30, v1alpha1.ProbeSucceeded, true, ""))
	without.Pod = builders.Pod("default", "web").Label("app", "web").Build()
	without.Pod.Spec.Containers[0].Name = "other"
	for name, test := range map[string]struct {
		view local.PodView
		// want are state, message, marks and reason of the problem.
		want string
	}{
		"running":         {running, "Succeeded fine [example.com/ready=True role=primary] "},
		"error":           {view(failing(30, v1alpha1.ProbeSucceeded, "no program")), "Succeeded  [example.com/ready=True role=primary] CannotRun"},
		"ended":           {ended, "Failed  [example.com/ready=True role=primary] PodEnding"},
		"not initialized": {pending, "None  [] PodNotInitialized"},
		"no container":    {without, "None  [] ContainerNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			c := follow(t, source(test.view), "")()
			if len(c.Pods) != 1 || !c.All {
				t.Fatalf("change %+v, want one pod", c)
			}
			pod := c.Pods[0]
			reason := ""
			if problem := pod.Probes[0].Problem; problem != nil {
				reason = string(problem.Reason)
			}
			expect.Equal(t, "pod", test.want, fmt.Sprintf("%s %s %v %s", pod.State, pod.Probes[0].Message, pod.Probes[0].Marks, reason))
			expect.Equal(t, "markers", []model.Marker{{Namespace: "default", Name: "m", Probes: 1}}, c.Markers)
		})
	}
}

// follow returns what waits for the next change of the namespace.
func follow(t *testing.T, s *pagesource.Source, namespace string) func() web.Change {
	t.Helper()
	changes, err := s.Open(t.Context(), web.Scope{Namespace: namespace})
	expect.NoError(t, err)
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return func() web.Change {
		c, err, _ := next()
		expect.NoError(t, err)
		return c
	}
}

func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source(view(change(30, v1alpha1.ProbeSucceeded, true, "")))
		if c := follow(t, s, "other")(); len(c.Pods)+len(c.Markers) != 0 || c.Markers == nil {
			t.Errorf("another namespace has %+v", c)
		}
		ctx, cancel := context.WithCancel(t.Context())
		changes, err := s.Open(ctx, web.Scope{Namespace: "default"})
		expect.NoError(t, err)
		found := 0
		var last error
		go func() {
			for _, last = range changes {
				found++
			}
		}()
		want := func(count int, after string) {
			t.Helper()
			if synctest.Wait(); found != count {
				t.Errorf("%s: %d changes, want %d", after, found, count)
			}
		}
		want(1, "at first")
		s.Observe(local.Change{Kind: local.KindLog})
		want(1, "after a line of output")
		s.Observe(local.Change{Kind: local.KindLabel})
		want(2, "after a label")
		cancel()
		if synctest.Wait(); !errors.Is(last, context.Canceled) {
			t.Errorf("the changes end with %v", last)
		}
	})
}

func TestTimeline(t *testing.T) {
	const succeeded, failed = v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed
	many := []local.Change{change(1, failed, true, "")}
	for i := range 1000 {
		many = append(many, change(i/10, []v1alpha1.ProbeState{succeeded, failed}[i%2], true, ""))
	}
	for name, test := range map[string]struct {
		changes []local.Change
		// want are the seconds and phases of the spans, or the last one only.
		want string
		last bool
	}{
		"transitions": {
			[]local.Change{change(10, failed, true, ""), change(20, failed, false, ""), change(30, succeeded, true, ""), change(90, failed, true, "")},
			"[0-10 NotKnown 10-30 Failed 30-90 Succeeded 90-120 Failed]", false,
		},
		"error that ended": {
			[]local.Change{
				change(10, succeeded, true, ""), failing(20, succeeded, "x"), failing(30, succeeded, "x"),
				change(40, succeeded, false, ""), change(50, succeeded, false, ""),
			},
			"[0-10 NotKnown 10-20 Succeeded 20-40 Error 40-120 Succeeded]", false,
		},
		"error that lasts": {
			[]local.Change{change(10, succeeded, true, ""), failing(60, succeeded, "x"), failing(90, succeeded, "y")},
			"[0-10 NotKnown 10-60 Succeeded 60-120 Error]", false,
		},
		"more than are kept": {many, "[99-120 Failed]", true},
	} {
		t.Run(name, func(t *testing.T) {
			shown := view(test.changes[len(test.changes)-1])
			s := source(shown)
			for _, c := range test.changes {
				s.Observe(c)
				if c.Probe.Transition {
					shown.Probes[1].LastTransition = c.Time
				}
			}
			s.Observe(local.Change{
				Kind: local.KindProbe, Namespace: "default", Pod: "web", Probe: &local.ProbeChange{Type: local.ProbeReadiness, Transition: true},
			})
			timeline, err := s.Timeline(t.Context(), web.TimelineQuery{Pod: model.Key{Namespace: "default", Name: "web"}, Since: time.Hour})
			expect.NoError(t, err)
			var spans []string
			for _, span := range timeline.Lines[0].Spans {
				spans = append(spans, fmt.Sprintf("%.0f-%.0f %s", span.Start.Sub(start).Seconds(), span.End.Sub(start).Seconds(), span.Phase))
			}
			if test.last {
				spans = slices.Delete(spans, 0, len(spans)-1)
			}
			if diff := cmp.Diff(test.want, fmt.Sprint(spans)); diff != "" || !timeline.Complete {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := source().Timeline(t.Context(), web.TimelineQuery{Pod: model.Key{Namespace: "default", Name: "gone"}}); err == nil {
		t.Error("a pod that does not exist has a timeline")
	}
}
