// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

func created(pods ...string) workload.Event {
	return workload.PodEvent("SuccessfulCreate", "Created pod %s.", "Created %d pods: %s.", pods...)
}

func deleted(pods ...string) workload.Event {
	return workload.PodEvent("SuccessfulDelete", "Deleted pod %s.", "Deleted %d pods: %s.", pods...)
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
	b := NewBase(Options{Recorder: recorder, Now: func() time.Time { return at }})
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
	other := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "b"}}
	warning := workload.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a cannot be updated."}
	for i, step := range []struct {
		after   time.Duration
		set     *v1alpha1.CloneSet
		events  []workload.Event
		settled bool
		want    []string
		again   time.Duration
	}{
		{0, set, []workload.Event{created("a", "b"), deleted("c")}, false, []string{"Normal SuccessfulCreate Created 2 pods: a, b.", "Normal SuccessfulDelete Deleted pod c."}, 0},
		{time.Second, set, []workload.Event{created("d"), warning}, false, []string{"Warning FailedUpdate Pod a cannot be updated."}, 4 * time.Second},
		{0, other, []workload.Event{created("x")}, false, []string{"Normal SuccessfulCreate Created pod x."}, 0},
		{time.Second, set, []workload.Event{warning, created("e"), deleted("f")}, false, []string{"Warning FailedUpdate Pod a cannot be updated."}, 3 * time.Second},
		{3 * time.Second, set, nil, false, []string{"Normal SuccessfulCreate Created 2 pods: d, e.", "Normal SuccessfulDelete Deleted pod f."}, 0},
		{time.Second, set, []workload.Event{created("g")}, false, nil, 4 * time.Second},
		{time.Second, set, []workload.Event{created("h")}, true, []string{"Normal SuccessfulCreate Created 2 pods: g, h."}, 0},
		{time.Second, set, nil, true, nil, 0},
	} {
		at = at.Add(step.after)
		b.record(step.set, step.events, &apply.Step{})
		result, err := b.Finish(t.Context(), step.set, &workload.Actions{}, &apply.Step{}, Status{Settled: step.settled})
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
	refused := apply.Step{Written: []string{"a", "c"}, Failures: []workload.Failure{{Object: "pod b", Err: errors.New("quota")}}}
	for name, test := range map[string]struct {
		step apply.Step
		want []string
	}{
		"budget used up":  {apply.Step{Written: []string{"c", "a"}, Incomplete: true}, []string{"Normal SuccessfulCreate Created 2 pods: a, c."}},
		"outdated":        {apply.Step{Written: []string{"d"}, Outdated: true}, []string{"Normal SuccessfulDelete Deleted pod d."}},
		"response lost":   {apply.Step{Errs: []error{errors.New("timeout")}}, nil},
		"refused":         {refused, []string{"Warning FailedScale pod b: quota", "Normal SuccessfulCreate Created 2 pods: a, c."}},
		"namespace ended": {apply.Step{Written: []string{"a"}, Ended: true}, []string{"Normal SuccessfulCreate Created pod a."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := record.NewFakeRecorder(100)
			b := NewBase(Options{Recorder: recorder, Now: time.Now})
			set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
			sentence := workload.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a cannot be updated."}
			b.record(set, []workload.Event{created("a", "b", "c"), deleted("d", "e"), sentence}, &test.step)
			b.report(set, true)
			if diff := cmp.Diff(test.want, recorded(recorder)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
