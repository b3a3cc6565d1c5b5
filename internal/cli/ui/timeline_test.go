// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/plan"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/builders"
)

func TestTimeline(t *testing.T) {
	in := probestatus.Input{
		Options: podview.Options{Defaults: plan.KubernetesDefaults()}, Now: time.Unix(10_000, 0),
		Pods: []*corev1.Pod{testPod("games", "a", "n1").Build()}, Markers: []*v1alpha1.PodProbeMarker{marker("games").Build()},
		NodesUnread: true, PlansUnread: true, ReportsUnread: true,
	}
	event := corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: "gamesa"}, Reason: v1alpha1.EventReasonProbeFailed, Message: "m#p: no",
		FirstTimestamp: metav1.Unix(9000, 0), LastTimestamp: metav1.Unix(9000, 0),
	}
	query := web.TimelineQuery{Pod: model.Key{Namespace: "games", Name: "a"}, Since: time.Hour}
	got, err := timeline(in, query, func() ([]corev1.Event, error) { return []corev1.Event{event}, nil })
	if err != nil || !got.Complete || len(got.Lines) != 1 || len(got.Lines[0].Spans) < 2 {
		t.Errorf("timeline %+v, error %v", got, err)
	}
	got, err = timeline(in, query, func() ([]corev1.Event, error) { return nil, errors.New("no permission") })
	if err != nil || got.Complete || got.Note != "no permission" || len(got.Lines[0].Spans) != 1 {
		t.Errorf("timeline without events %+v, error %v", got, err)
	}
	for name, pods := range map[string][]*corev1.Pod{
		"unselected": {builders.Pod("games", "unselected").Node("n1").Build()}, "none": nil,
	} {
		in.Pods = pods
		_, err := timeline(in, query, func() ([]corev1.Event, error) {
			t.Errorf("pod %s: its events are read", name)
			return nil, nil
		})
		var refusal *web.Refusal
		if !errors.As(err, &refusal) || refusal.Status != 404 {
			t.Errorf("pod %s: error %v, want a refusal with status 404", name, err)
		}
	}
}
