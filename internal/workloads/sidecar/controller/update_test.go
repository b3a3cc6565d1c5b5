// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/reconciler"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/update"
	"github.com/seamark-dev/seamark/test/expect"
)

// TestEventsOfUpdates records the events about pods whose writes succeeded, and those of the next pods after a pause.
func TestEventsOfUpdates(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	recorder := record.NewFakeRecorder(10)
	c := New(Options{Now: func() time.Time { return now }, Recorder: recorder})
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "u"}}
	update := func(outcome apply.Outcome, pods ...string) (wait time.Duration, recorded []string) {
		for _, pod := range pods {
			c.collect(set, []planning.Event{planning.StartedInPlace(pod, "logs-2")}, &outcome)
		}
		wait = c.announce(set)
		for len(recorder.Events) > 0 {
			recorded = append(recorded, <-recorder.Events)
		}
		return wait, recorded
	}
	const normal = "Normal SuccessfulUpdatePodInPlace Started to update "
	for i, step := range []struct {
		outcome apply.Outcome
		pods    []string
		after   time.Duration
		wait    time.Duration
		want    []string
	}{
		{outcome: apply.Outcome{Failures: []planning.Failure{{}}}, pods: []string{"ns/a"}},
		{pods: []string{"ns/a"}, want: []string{normal + "pod ns/a in place to revision logs-2."}},
		{pods: []string{"ns/b", "ns/c"}, after: time.Second, wait: reconciler.EventPause - time.Second},
		{after: reconciler.EventPause, want: []string{normal + "2 pods in place to revision logs-2: ns/b, ns/c."}},
	} {
		now = now.Add(step.after)
		wait, recorded := update(step.outcome, step.pods...)
		expect.Equal(t, fmt.Sprintf("wait of step %d", i), step.wait, wait)
		expect.Equal(t, fmt.Sprintf("events of step %d", i), step.want, recorded)
	}
}

// TestRefusedUpdatesAreTriedAgain reconciles a set for another reason while a refused pod waits: the wait goes on.
func TestRefusedUpdatesAreTriedAgain(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := New(Options{Now: func() time.Time { return now }, Recorder: record.NewFakeRecorder(10)})
	set := &v1alpha1.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: "logs", UID: "u"}}
	out := &update.Output{}
	c.refuseUpdates(set, out, &apply.Outcome{Failures: []planning.Failure{{Pod: "a", Object: "pod a", Err: errors.New("refused")}}})
	if out.RequeueAfter != firstRefusal {
		t.Errorf("tried again after %s, want %s", out.RequeueAfter, firstRefusal)
	}
	now = now.Add(time.Second)
	if skipped, wait := c.refusing(set); !skipped["a"] || wait != firstRefusal-time.Second {
		t.Errorf("skipped %v for %s, want the pod for %s", skipped, wait, firstRefusal-time.Second)
	}
	now = now.Add(firstRefusal)
	if skipped, wait := c.refusing(set); len(skipped) > 0 || wait != 0 {
		t.Errorf("skipped %v for %s after the wait", skipped, wait)
	}
}
