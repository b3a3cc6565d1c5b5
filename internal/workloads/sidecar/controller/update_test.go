// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/workloads/apply"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/update"
)

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
