// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/manager/apply"
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
	for name, step := range map[string]apply.Step{
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
			b := NewBase(Options{Client: server, Metrics: noMetrics{}, Recorder: recorder, Now: func() time.Time { return at }})
			b.Kind = v1alpha1.GroupVersion().WithKind("CloneSet")
			actions := &workload.Actions{StatusEvents: []workload.Event{{Sentence: "something new"}}}
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
				result, err := b.Finish(t.Context(), set, actions, &step, Status{Before: &set.Status, After: &after})
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
			b := NewBase(Options{Metrics: noMetrics{}, Now: time.Now})
			step := apply.Step{Errs: []error{errors.New("create pod set-a: context canceled")}}
			result, err := b.Finish(ctx, set, &workload.Actions{}, &step, Status{Before: &set.Status, After: &set.Status})
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
	b := NewBase(Options{Client: server, Metrics: noMetrics{}, Now: func() time.Time { return at }})
	b.Kind = v1alpha1.GroupVersion().WithKind("CloneSet")
	writes := map[time.Duration]int32{}
	for i := range pods {
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			t.Fatal(err)
		}
		before, after := set.Status.ReadyReplicas, set.Status
		after.ReadyReplicas = int32(i + 1) //nolint:gosec // Small.
		result, err := b.Finish(t.Context(), set, &workload.Actions{}, &apply.Step{},
			Status{Before: &set.Status, After: &after, Settled: i == pods-1})
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
