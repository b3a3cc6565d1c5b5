// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
