// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

func TestEventsThatDifferInTheirPodsBecomeOne(t *testing.T) {
	t.Parallel()
	of := func(revision string, pods ...string) planning.Event {
		return planning.PodEvent("SuccessfulCreate",
			"Created pod %s of revision "+revision+".", "Created %d pods of revision "+revision+": %s.", pods...)
	}
	warning := planning.Event{Type: corev1.EventTypeWarning, Reason: "FailedUpdate", Sentence: "Pod a is not updated."}
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("p%d", i))
	}
	const first = "p0, p1, p2, p3, p4, p5, p6, p7, p8, p9"
	for name, test := range map[string]struct {
		events []planning.Event
		want   []string
	}{
		"one pod":               {[]planning.Event{of("x", "a")}, []string{"Created pod a of revision x."}},
		"two pods":              {[]planning.Event{of("x", "a"), of("x", "b")}, []string{"Created 2 pods of revision x: a, b."}},
		"two revisions":         {[]planning.Event{of("x", "a"), of("y", "b"), of("x", "c")}, []string{"Created 2 pods of revision x: a, c.", "Created pod b of revision y."}},
		"sentences":             {[]planning.Event{warning, of("x", "a"), warning}, []string{warning.Sentence, "Created pod a of revision x.", warning.Sentence}},
		"many pods":             {[]planning.Event{of("x", many...)}, []string{"Created 25 pods of revision x: " + first + " and 15 more."}},
		"many pods in two":      {[]planning.Event{of("x", many[:3]...), of("x", many[3:]...)}, []string{"Created 25 pods of revision x: " + first + " and 15 more."}},
		"many pods in three":    {[]planning.Event{of("x", many[:14]...), of("x", many[14:19]...), of("x", many[19:]...)}, []string{"Created 25 pods of revision x: " + first + " and 15 more."}},
		"as many as are listed": {[]planning.Event{of("x", many[:9]...), of("x", many[9])}, []string{"Created 10 pods of revision x: " + first + "."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []planning.Event
			for _, e := range test.events {
				events = planning.AddEvent(events, e)
			}
			var got []string
			for i := range events {
				got = append(got, events[i].Message())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}
