// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/expect"
)

// eventStore stores events as the API server does. It returns the errors in fail first.
type eventStore struct {
	mu     sync.Mutex
	events map[string]*corev1.Event
	fail   []error
}

func (s *eventStore) next() error {
	if len(s.fail) == 0 {
		return nil
	}
	err := s.fail[0]
	s.fail = s.fail[1:]
	return err
}

func (s *eventStore) Create(_ context.Context, event *corev1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.next(); err != nil {
		return err
	}
	s.events[event.Name] = event.DeepCopy()
	return nil
}

func (s *eventStore) Patch(_ context.Context, event *corev1.Event, patch []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.next(); err != nil {
		return err
	}
	stored, found := s.events[event.Name]
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, event.Name)
	}
	return json.Unmarshal(patch, stored)
}

// lines formats the stored events, sorted.
func (s *eventStore) lines() []string {
	var lines []string
	for _, e := range s.events {
		lines = append(lines, fmt.Sprintf("%s/%s %s %s %s x%d", e.InvolvedObject.Name, e.InvolvedObject.FieldPath, e.Type, e.Reason, e.Message, e.Count))
	}
	slices.Sort(lines)
	return lines
}

func changed(pod, probe string, state v1alpha1.ProbeState, message string) report.Event {
	return report.Event{
		Pod:   &v1alpha1.PodProbe{Name: pod, Namespace: "games", UID: "uid-" + pod},
		Probe: &v1alpha1.ContainerProbe{Name: probe, ContainerName: "main"},
		State: state, Message: message,
	}
}

func TestEvents(t *testing.T) {
	var crowd []report.Event
	var crowdLines []string
	for pod := range 40 {
		for probe := range 3 {
			crowd = append(crowd, changed(fmt.Sprintf("p%02d", pod), fmt.Sprintf("m#%d", probe), succeeded, "same"))
			crowdLines = append(crowdLines, fmt.Sprintf("p%02d/spec.containers{main} Normal KruiseProbeSucceeded m#%d: same x1", pod, probe))
		}
	}
	var flapping []report.Event
	for i := range 20 {
		flapping = append(flapping, changed("p", "m#p", []v1alpha1.ProbeState{succeeded, failed}[i%2], "text"))
	}
	var busy []report.Event
	for i := range 100 {
		busy = append(busy, changed("p", "m#p", []v1alpha1.ProbeState{succeeded, failed}[i%2], "text"))
	}
	rejection := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
	cases := map[string]struct {
		fail     []error
		reported []report.Event
		want     []string
	}{
		"both reasons": {
			reported: []report.Event{changed("p", "m#p", succeeded, "ok"), changed("p", "m#q", failed, "")},
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#q x1",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: ok x1",
			},
		},
		"burst of many probes": {reported: crowd, want: crowdLines},
		"equal events": {
			reported: flapping,
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#p: text x10",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: text x10",
			},
		},
		"rate limit of one probe": {
			reported: append(slices.Clone(busy), changed("p", "m#q", failed, "other")),
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#p: text x25",
				"p/spec.containers{main} Normal KruiseProbeFailed m#q: other x1",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: text x25",
			},
		},
		"connection refused": {
			fail:     []error{errors.New("refused"), errors.New("refused")},
			reported: []report.Event{changed("p", "m#p", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#p: no x1"},
		},
		"response lost": {
			fail:     []error{errors.New("timeout"), apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "e")},
			reported: []report.Event{changed("p", "m#p", failed, "no"), changed("p", "m#q", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#q: no x1"},
		},
		"API server unavailable": {
			fail:     []error{apierrors.NewServiceUnavailable("starting"), apierrors.NewInternalError(errors.New("etcd"))},
			reported: []report.Event{changed("p", "m#p", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#p: no x1"},
		},
		"rejection": {
			fail:     []error{rejection},
			reported: []report.Event{changed("p", "m#p", failed, "no"), changed("p", "m#q", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#q: no x1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &eventStore{events: map[string]*corev1.Event{}, fail: tc.fail}
				ctx, cancel := context.WithCancel(t.Context())
				e := newEvents(store, "node", agentmetrics.New(prometheus.NewRegistry()), logr.Discard())
				done := make(chan struct{})
				e.Emit(tc.reported)
				go func() {
					defer close(done)
					e.run(ctx)
				}()
				e.Drain(ctx)
				cancel()
				<-done
				expect.Equal(t, "events", tc.want, store.lines())
				for _, event := range store.events {
					if event.Source.Component != "kruise-daemon-podprobe" || event.Source.Host != "node" ||
						event.InvolvedObject.Kind != "Pod" || event.InvolvedObject.UID == "" || event.Namespace != "games" {
						t.Errorf("unexpected source or object of event %+v", event)
					}
				}
			})
		})
	}
}

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
