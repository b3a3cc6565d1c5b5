// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestCorrelator checks how often each event is written and which share an object.
func TestCorrelator(t *testing.T) {
	type step struct {
		after   time.Duration
		message string
		want    string
	}
	// storm returns events with different messages: ten objects, of which the last one is repeated.
	storm := func() (steps []step) {
		for n := range 30 {
			message := fmt.Sprintf("m#p: %d", n)
			want := "own " + message + " x1"
			if n >= 10 {
				want = fmt.Sprint("repeats ", message, " x", n-8)
			}
			steps = append(steps, step{time.Minute, message, want})
		}
		return steps
	}
	cases := map[string][]step{
		"equal messages": {
			{0, "m#p: a", "own m#p: a x1"},
			{time.Second, "m#p: a", "repeats m#p: a x2"},
			{10 * time.Minute, "m#p: a", "repeats m#p: a x3"},
		},
		"two probes": {
			{0, "m#p: a", "own m#p: a x1"},
			{0, "m#q: a", "own m#q: a x1"},
		},
		"different messages": storm(),
		"a pause": {
			{0, "m#p: a", "own m#p: a x1"},
			{11 * time.Minute, "m#p: a", "own m#p: a x1"},
			{time.Minute, "m#p: b", "own m#p: b x1"},
		},
		"a pause after a storm": append(storm(), step{11 * time.Minute, "m#p: a", "own m#p: a x1"}, step{0, "m#p: b", "own m#p: b x1"}),
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			c := newCorrelator()
			names := map[string]bool{}
			for i, s := range steps {
				now = now.Add(s.after)
				event := &corev1.Event{Message: s.message, Reason: "R", Count: 1}
				event.Name = fmt.Sprint("event-", i)
				if !c.correlate(now, event) {
					t.Fatalf("step %d: dropped", i)
				}
				got := "own "
				if names[event.Name] {
					got = "repeats "
				}
				names[event.Name] = true
				expect.Equal(t, fmt.Sprintf("step %d", i), s.want, fmt.Sprintf("%s%s x%d", got, event.Message, event.Count))
			}
		})
	}
}

// TestCorrelatorLimit checks that a probe has a burst of events and then one every ten seconds,
// and that the count includes the events that were not written.
func TestCorrelatorLimit(t *testing.T) {
	c, now := newCorrelator(), time.Unix(1000, 0)
	write := func() (int32, bool) {
		event := &corev1.Event{Message: "m#p: a"}
		written := c.correlate(now, event)
		return event.Count, written
	}
	for n := range 30 {
		if count, written := write(); written != (n < eventBurst) || count != int32(n+1) {
			t.Fatalf("event %d: count %d, written %t", n, count, written)
		}
	}
	now = now.Add(10 * time.Second)
	if count, written := write(); !written || count != 31 {
		t.Errorf("after 10 s: count %d, written %t, want 31, true", count, written)
	}
	if _, written := write(); written {
		t.Error("the next event is written at once")
	}
}

// TestEventNames checks that the name of an event is valid whatever the name of the pod is.
func TestEventNames(t *testing.T) {
	at := time.Unix(0, 0x17a)
	cases := map[string]struct{ pod, want string }{
		"short":                     {"p", "p.17a"},
		"too long":                  {strings.Repeat("p", 253), strings.Repeat("p", 249) + ".17a"},
		"too long, cut at a hyphen": {strings.Repeat("p", 248) + "-pppp", strings.Repeat("p", 248) + ".17a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := nameOf(tc.pod, at)
			expect.Equal(t, "name", tc.want, got)
			if errs := validation.NameIsDNSSubdomain(got, false); len(errs) > 0 {
				t.Errorf("invalid name %q: %s", got, errs)
			}
		})
	}
}
