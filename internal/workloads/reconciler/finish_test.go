// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/cloneset"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/fakeapi"
)

type noMetrics struct{}

func (noMetrics) Failed(string)        {}
func (noMetrics) Waited(string)        {}
func (noMetrics) StatusWritten(string) {}

// TestStatusFollowsWhileEveryStepWrites finishes steps that leave no time without writes, as those of
// the rollout of a large set.
func TestStatusFollowsWhileEveryStepWrites(t *testing.T) {
	for name, outcome := range map[string]apply.Outcome{
		"writes to pods":  {Pods: "1"},
		"deleted pods":    {Deleted: []types.UID{"a"}},
		"incomplete step": {Incomplete: true},
		"conflicts":       {Outdated: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
			server := fakeapi.Client(t, set).WithStatusSubresource(set).Build()
			at := time.Unix(1000, 0)
			recorder := record.NewFakeRecorder(10)
			b := newBase(Options{Client: server, Metrics: noMetrics{}, Recorder: recorder, Now: func() time.Time { return at }})
			actions := &planning.Actions{StatusEvents: []planning.Event{{Sentence: "something new"}}}
			stored := func() int32 {
				t.Helper()
				if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
					t.Fatal(err)
				}
				return set.Status.Replicas
			}
			for range 10 {
				before := stored()
				after := set.Status
				after.Replicas++
				result, err := b.finish(t.Context(), set, actions, &outcome, Status{Before: &set.Status, After: &after})
				if err != nil || result.RequeueAfter == 0 && stored() == 0 {
					t.Fatalf("result %+v, %v, want that the status is written later", result, err)
				}
				if waited := at.Sub(time.Unix(1000, 0)); stored() > before && waited < longestPostponement {
					t.Errorf("status written after %s, want it after %s", waited, longestPostponement)
				}
				at = at.Add(time.Second)
			}
			if got := stored(); got != 1 {
				t.Errorf("%d writes of the status in 10 s, want 1", got)
			}
			if got := len(recorder.Events); got != 1 {
				t.Errorf("%d events about the status, want one after its write", got)
			}
		})
	}
}

func TestErrorsAtTheEndOfTheProcessAreNotLogged(t *testing.T) {
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
	for name, lines := range map[string]int{"running": 1, "ending": 0} {
		t.Run(name, func(t *testing.T) {
			logged := 0
			logger := funcr.New(func(_, _ string) { logged++ }, funcr.Options{})
			ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), logger))
			defer cancel()
			if name == "ending" {
				cancel()
			}
			b := newBase(Options{Metrics: noMetrics{}, Now: time.Now})
			outcome := apply.Outcome{Errs: []error{errors.New("create pod set-a: context canceled")}}
			result, err := b.finish(ctx, set, &planning.Actions{}, &outcome, Status{Before: &set.Status, After: &set.Status})
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("result %+v, %v, want a retry", result, err)
			}
			if logged != lines {
				t.Errorf("%d lines in the log, want %d", logged, lines)
			}
		})
	}
}

// TestStatusOfChangingSet counts pods that become ready one after the other.
func TestStatusOfChangingSet(t *testing.T) {
	const pods, between = 40, 100 * time.Millisecond
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
	server := fakeapi.Client(t, set).WithStatusSubresource(set).Build()
	start := time.Unix(1000, 0)
	at := start
	b := newBase(Options{Client: server, Metrics: noMetrics{}, Now: func() time.Time { return at }})
	writes := map[time.Duration]int32{}
	for i := range pods {
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		before, after := set.Status.ReadyReplicas, set.Status
		after.ReadyReplicas = int32(i + 1) //nolint:gosec // Small.
		result, err := b.finish(t.Context(), set, &planning.Actions{}, &apply.Outcome{},
			Status{Before: &set.Status, After: &after, Converged: i == pods-1})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		if result.Priority == nil || *result.Priority != 0 {
			t.Errorf("pod %d: reconciled with priority %v, want 0", i, result.Priority)
		}
		switch written := set.Status.ReadyReplicas; {
		case written != before:
			writes[at.Sub(start)] = written
		case result.RequeueAfter <= 0 || result.RequeueAfter > progressPause:
			t.Errorf("pod %d: reconciled after %s, want within %s", i, result.RequeueAfter, progressPause)
		}
		at = at.Add(between)
	}
	want := map[time.Duration]int32{
		time.Second: 11, 2100 * time.Millisecond: 22, 3200 * time.Millisecond: 33, 3900 * time.Millisecond: pods,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("ready pods in writes of the status by time (-want +got):\n%s", diff)
	}
}

func TestStatusesOfManyChangingSetsFollowLater(t *testing.T) {
	for changing, want := range map[int]time.Duration{
		0: time.Second, 20: time.Second, 40: 2 * time.Second, 100: 5 * time.Second, 200: 10 * time.Second, 5000: 10 * time.Second,
	} {
		if got := progress(changing); got != want {
			t.Errorf("the status of one of %d sets may differ for %s, want %s", changing, got, want)
		}
	}
}

// newBase returns the part of a Reconciler of CloneSets that does not depend on their planner.
func newBase(options Options) *base {
	return &base{Options: options, kind: v1alpha1.GroupVersion().WithKind("CloneSet"), expectations: newExpectations()}
}

func created(pods ...string) planning.Event {
	return planning.PodEvent("SuccessfulCreate", "Created pod %s.", "Created %d pods: %s.", pods...)
}

func deleted(pods ...string) planning.Event {
	return planning.PodEvent("SuccessfulDelete", "Deleted pod %s.", "Deleted %d pods: %s.", pods...)
}

// recorded returns the events that the recorder has received so far.
func recorded(r *record.FakeRecorder) (events []string) {
	for len(r.Events) > 0 {
		events = append(events, <-r.Events)
	}
	return events
}

func TestEventsOfARolloutBecomeFew(t *testing.T) {
	recorder, at := record.NewFakeRecorder(100), time.Unix(1000, 0)
	b := newBase(Options{Recorder: recorder, Now: func() time.Time { return at }})
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
	other := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "b"}}
	warning := planning.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a cannot be updated."}
	for i, step := range []struct {
		after     time.Duration
		set       *v1alpha1.CloneSet
		events    []planning.Event
		converged bool
		want      []string
		again     time.Duration
	}{
		{0, set, []planning.Event{created("a", "b"), deleted("c")}, false, []string{"Normal SuccessfulCreate Created 2 pods: a, b.", "Normal SuccessfulDelete Deleted pod c."}, 0},
		{time.Second, set, []planning.Event{created("d"), warning}, false, []string{"Warning FailedUpdate Pod a cannot be updated."}, 4 * time.Second},
		{0, other, []planning.Event{created("x")}, false, []string{"Normal SuccessfulCreate Created pod x."}, 0},
		{time.Second, set, []planning.Event{warning, created("e"), deleted("f")}, false, []string{"Warning FailedUpdate Pod a cannot be updated."}, 3 * time.Second},
		{3 * time.Second, set, nil, false, []string{"Normal SuccessfulCreate Created 2 pods: d, e.", "Normal SuccessfulDelete Deleted pod f."}, 0},
		{time.Second, set, []planning.Event{created("g")}, false, nil, 4 * time.Second},
		{time.Second, set, []planning.Event{created("h")}, true, []string{"Normal SuccessfulCreate Created 2 pods: g, h."}, 0},
		{time.Second, set, nil, true, nil, 0},
	} {
		at = at.Add(step.after)
		b.record(step.set, step.events, &apply.Outcome{})
		result, err := b.finish(t.Context(), step.set, &planning.Actions{}, &apply.Outcome{}, Status{Converged: step.converged})
		if err != nil || result.RequeueAfter != step.again {
			t.Errorf("step %d: reconciled again after %s, %v, want %s", i, result.RequeueAfter, err, step.again)
		}
		if diff := cmp.Diff(step.want, recorded(recorder)); diff != "" {
			t.Errorf("events of step %d (-want +got):\n%s", i, diff)
		}
	}
}

// A step that did not succeed has events about what it wrote. Others follow with the next step.
func TestEventsOfPartialSteps(t *testing.T) {
	t.Parallel()
	refused := apply.Outcome{Written: []string{"a", "c"}, Failures: []planning.Failure{{Object: "pod b", Err: errors.New("quota")}}}
	for name, test := range map[string]struct {
		step apply.Outcome
		want []string
	}{
		"budget used up":  {apply.Outcome{Written: []string{"c", "a"}, Incomplete: true}, []string{"Normal SuccessfulCreate Created 2 pods: a, c."}},
		"outdated":        {apply.Outcome{Written: []string{"d"}, Outdated: true}, []string{"Normal SuccessfulDelete Deleted pod d."}},
		"response lost":   {apply.Outcome{Errs: []error{errors.New("timeout")}}, nil},
		"refused":         {refused, []string{"Warning FailedScale pod b: quota", "Normal SuccessfulCreate Created 2 pods: a, c."}},
		"namespace ended": {apply.Outcome{Written: []string{"a"}, Ended: true}, []string{"Normal SuccessfulCreate Created pod a."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := record.NewFakeRecorder(100)
			b := newBase(Options{Recorder: recorder, Now: time.Now})
			set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
			sentence := planning.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a cannot be updated."}
			b.record(set, []planning.Event{created("a", "b", "c"), deleted("d", "e"), sentence}, &test.step)
			b.report(set, true)
			if diff := cmp.Diff(test.want, recorded(recorder)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReasonWithoutStepIsReportedOnce(t *testing.T) {
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid"}}
	server := fakeapi.Client(t, set).WithStatusSubresource(set).Build()
	recorder := record.NewFakeRecorder(10)
	at := time.Unix(1000, 0)
	b := newBase(Options{Client: server, Metrics: noMetrics{}, Recorder: recorder, Now: func() time.Time { return at }})
	kind := cloneset.Set(false)
	var versions []string
	for _, reason := range []error{errors.New("a is broken"), errors.New("a is broken"), errors.New("b is broken")} {
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		after := *set.Status.DeepCopy()
		kind.Unplanned(&after, reason, at)
		if err := b.unplanned(t.Context(), set, reason, Status{Before: &set.Status, After: &after}); !errors.Is(err, reason) {
			t.Errorf("error %v, want %v: the set is not tried again with a backoff", err, reason)
		}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		c := set.Status.Conditions[0]
		if c.Status != corev1.ConditionTrue || c.Message != reason.Error() {
			t.Errorf("condition %+v, want the message %q", c, reason)
		}
		versions = append(versions, set.ResourceVersion)
		at = at.Add(time.Minute)
	}
	if versions[0] != versions[1] || versions[1] == versions[2] {
		t.Errorf("resource versions %v, want a write for each new reason", versions)
	}
	close(recorder.Events)
	var events []string
	for event := range recorder.Events {
		events = append(events, event)
	}
	if diff := cmp.Diff([]string{"Warning FailedScale a is broken", "Warning FailedScale b is broken"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
