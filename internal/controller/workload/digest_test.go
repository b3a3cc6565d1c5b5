// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/apply"
	"github.com/seamark-dev/seamark/internal/workload"
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
	synctest.Test(t, func(t *testing.T) {
		recorder := record.NewFakeRecorder(100)
		b := NewBase(Options{Recorder: recorder, Now: time.Now})
		go func() { _ = b.reportDigest(t.Context()) }()
		set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
		other := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "b"}}
		warning := workload.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a cannot be updated."}
		for _, step := range []struct {
			after  time.Duration
			set    *v1alpha1.CloneSet
			events []workload.Event
			want   []string
		}{
			{0, set, []workload.Event{created("a", "b"), deleted("c")}, []string{"Normal SuccessfulCreate Created 2 pods: a, b.", "Normal SuccessfulDelete Deleted pod c."}},
			{time.Second, set, []workload.Event{created("d"), warning}, []string{"Warning FailedUpdate Pod a cannot be updated."}},
			{0, other, []workload.Event{created("x")}, []string{"Normal SuccessfulCreate Created pod x."}},
			{time.Second, set, []workload.Event{warning, created("e")}, []string{"Warning FailedUpdate Pod a cannot be updated."}},
			{4 * time.Second, set, nil, []string{"Normal SuccessfulCreate Created 2 pods: d, e."}},
			{time.Second, set, []workload.Event{created("f"), deleted("g")}, []string{"Normal SuccessfulDelete Deleted pod g."}},
			{5 * time.Second, set, nil, []string{"Normal SuccessfulCreate Created pod f."}},
			{11 * time.Second, other, []workload.Event{created("y")}, []string{"Normal SuccessfulCreate Created pod y."}},
		} {
			<-time.After(step.after)
			b.record(step.set, step.events, &apply.Step{})
			synctest.Wait()
			if diff := cmp.Diff(step.want, recorded(recorder)); diff != "" {
				t.Errorf("events after another %s (-want +got):\n%s", step.after, diff)
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if left := b.digest.pauses.Len(); left > 0 {
			t.Errorf("%d pauses are remembered after a minute, want none", left)
		}
	})
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
			if diff := cmp.Diff(test.want, recorded(recorder)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEventsAreRecordedAtTheEnd(t *testing.T) {
	t.Parallel()
	recorder := record.NewFakeRecorder(100)
	b := NewBase(Options{Recorder: recorder, Now: time.Now})
	set := &v1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "a"}}
	for i := range 14 {
		b.record(set, []workload.Event{created(fmt.Sprintf("web-%d", i))}, &apply.Step{})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := b.reportDigest(ended); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Normal SuccessfulCreate Created pod web-0.",
		"Normal SuccessfulCreate Created 13 pods: web-1, web-2, web-3, web-4, web-5, web-6, web-7, web-8, web-9, web-10 and 3 more.",
	}
	if diff := cmp.Diff(want, recorded(recorder)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
