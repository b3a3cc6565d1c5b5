// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestAvailable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const minReady = 10 * time.Second
	tests := map[string]struct {
		// since is for how long the pod has been ready.
		since, minReady time.Duration
		unready         bool
		available       bool
		left            time.Duration
	}{
		"not ready":                             {unready: true, since: time.Hour, minReady: minReady},
		"ready":                                 {available: true},
		"ready for long enough":                 {since: minReady, minReady: minReady, available: true},
		"not ready for long enough":             {since: 4 * time.Second, minReady: minReady, left: 6 * time.Second},
		"the clock of the kubelet is ahead":     {since: -time.Hour, available: true},
		"it is ahead, and readiness must last":  {since: -time.Hour, minReady: minReady, left: minReady},
		"the clock of the kubelet lags an hour": {since: time.Hour, minReady: minReady, available: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := corev1.ConditionTrue
			if test.unready {
				status = corev1.ConditionFalse
			}
			pod := builders.Pod("ns", "web").Condition(corev1.PodCondition{
				Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-test.since)),
			}).Build()
			available, left := planning.Available(pod, test.minReady, now)
			if available != test.available || left != test.left {
				t.Errorf("Available() = %t, %s, want %t, %s", available, left, test.available, test.left)
			}
		})
	}
}

func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Nanosecond, 0: time.Nanosecond, time.Second: time.Second, time.Hour: planning.LongestWait,
	} {
		if got := planning.Until(now.Add(after), now); got != want {
			t.Errorf("Until() of a time in %s = %s, want %s", after, got, want)
		}
	}
}
