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
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	"github.com/seamark-dev/seamark/internal/report"
)

// archive is an API server's store of events.
type archive struct {
	mu     sync.Mutex
	events map[string]*corev1.Event
	fail   []error
}

func (a *archive) next() error {
	if len(a.fail) == 0 {
		return nil
	}
	err := a.fail[0]
	a.fail = a.fail[1:]
	return err
}

func (a *archive) CreateWithEventNamespaceWithContext(_ context.Context, event *corev1.Event) (*corev1.Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.next(); err != nil {
		return nil, err
	}
	a.events[event.Name] = event
	return event, nil
}

func (a *archive) PatchWithEventNamespaceWithContext(_ context.Context, event *corev1.Event, data []byte) (*corev1.Event, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.next(); err != nil {
		return nil, err
	}
	stored, found := a.events[event.Name]
	if !found {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, event.Name)
	}
	return stored, json.Unmarshal(data, stored)
}

// lines tells the stored events, in order.
func (a *archive) lines() []string {
	var lines []string
	for _, e := range a.events {
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
		flapping = append(flapping, changed("p", "m#p", []v1alpha1.ProbeState{succeeded, failed}[i%2], "said"))
	}
	var busy []report.Event
	for i := range 100 {
		busy = append(busy, changed("p", "m#p", []v1alpha1.ProbeState{succeeded, failed}[i%2], "said"))
	}
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
	cases := map[string]struct {
		fail     []error
		reported []report.Event
		want     []string
	}{
		"both kinds": {
			reported: []report.Event{changed("p", "m#p", succeeded, "ok"), changed("p", "m#q", failed, "")},
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#q x1",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: ok x1",
			},
		},
		"many probes of many pods at once": {reported: crowd, want: crowdLines},
		"what says the same is counted": {
			reported: flapping,
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#p: said x10",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: said x10",
			},
		},
		"a probe that never rests is bounded, and takes nothing from others": {
			reported: append(slices.Clone(busy), changed("p", "m#q", failed, "quiet")),
			want: []string{
				"p/spec.containers{main} Normal KruiseProbeFailed m#p: said x25",
				"p/spec.containers{main} Normal KruiseProbeFailed m#q: quiet x1",
				"p/spec.containers{main} Normal KruiseProbeSucceeded m#p: said x25",
			},
		},
		"no answer is tried again": {
			fail:     []error{errors.New("refused"), errors.New("refused")},
			reported: []report.Event{changed("p", "m#p", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#p: no x1"},
		},
		"a try that arrived without an answer is not made twice": {
			fail:     []error{errors.New("timeout"), apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "e")},
			reported: []report.Event{changed("p", "m#p", failed, "no"), changed("p", "m#q", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#q: no x1"},
		},
		"an API server in distress is tried again": {
			fail:     []error{apierrors.NewServiceUnavailable("starting"), apierrors.NewInternalError(errors.New("etcd"))},
			reported: []report.Event{changed("p", "m#p", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#p: no x1"},
		},
		"a refusal is not": {
			fail:     []error{refusal},
			reported: []report.Event{changed("p", "m#p", failed, "no"), changed("p", "m#q", failed, "no")},
			want:     []string{"p/spec.containers{main} Normal KruiseProbeFailed m#q: no x1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &archive{events: map[string]*corev1.Event{}, fail: tc.fail}
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
				if diff := cmp.Diff(tc.want, store.lines()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				for _, event := range store.events {
					if event.Source.Component != "kruise-daemon-podprobe" || event.Source.Host != "node" ||
						event.InvolvedObject.Kind != "Pod" || event.InvolvedObject.UID == "" || event.Namespace != "games" {
						t.Errorf("event %+v", event)
					}
				}
			})
		})
	}
}
