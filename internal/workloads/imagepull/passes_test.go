// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package imagepull_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestNodesThatAreNotReadyWaitAlone lets one node be not ready for days: the others pull every day, also if the process
// ends, and the node pulls once when it returns.
func TestNodesThatAreNotReadyWaitAlone(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t, 3, never, always)
		w.set("n001", corev1.NodeReady, corev1.ConditionUnknown)
		w.pull()
		want := []string{"n002", "n003"}
		for day := range 3 {
			w.now = noon.Add(time.Duration(day+1)*24*time.Hour - time.Second)
			if restarts {
				w.restart()
			}
			if w.pull(); len(w.created) != len(want) {
				t.Fatalf("nodes %v before day %d, want %v", w.created, day+2, want)
			}
			want = append(want, "n002", "n003")
			if w.now = w.now.Add(time.Second); restarts {
				w.restart()
			}
			w.pull()
			if w.restart(); w.job.Status.PassTime == nil || !w.job.Status.PassTime.Time.Equal(w.now) || w.reason() != "False Waiting" {
				t.Errorf("day %d: pass of %v, %s", day+2, w.job.Status.PassTime, w.reason())
			}
			w.drain()
		}
		w.now = w.now.Add(time.Hour)
		w.set("n001", corev1.NodeReady, corev1.ConditionTrue)
		w.pull()
		if want = append(want, "n001"); !slices.Equal(w.created, want) {
			t.Errorf("nodes %v, want %v", w.created, want)
		}
		w.want("3 0 3 0")
		w.now = noon.Add(4 * 24 * time.Hour)
		w.pull()
		if want = append(want, "n001", "n002", "n003"); !slices.Equal(w.created, want) {
			t.Errorf("nodes %v, want %v", w.created, want)
		}
	}
}

// TestAPassThatTakesLongerThanADay asks the last nodes, too, and begins the next pass when the pulls have ended.
func TestAPassThatTakesLongerThanADay(t *testing.T) {
	w := newWorld(t, 3, never, always, parallelism(1), policy(86400, 0))
	w.set("n002", corev1.NodeReady, corev1.ConditionUnknown)
	w.drain()
	w.pass(20 * time.Hour)
	w.reports("n001", "sha256:1")
	w.drain()
	w.pass(10 * time.Hour)
	if want := []string{"n001", "n003"}; !slices.Equal(w.created, want) {
		t.Fatalf("nodes %v, want %v: the pass goes on", w.created, want)
	}
	w.reports("n003", "sha256:1")
	w.pull()
	if want := []string{"n001", "n003", "n001", "n003"}; !slices.Equal(w.created, want) {
		t.Errorf("nodes %v, want %v", w.created, want)
	}
}
