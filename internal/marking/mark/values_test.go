// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestValuesFromMessages(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("idle").Label(v1alpha1.ProbeFailed, "role", "down")).Build()
	marker.Spec.Probes[0].MarkerPolicy = append(marker.Spec.Probes[0].MarkerPolicy, v1alpha1.ProbeMarkerPolicy{
		State:           v1alpha1.ProbeSucceeded,
		LabelsFrom:      []v1alpha1.ValueSource{{Key: "role", JSONPath: ".role", AllowedValues: []string{"primary"}}},
		AnnotationsFrom: []v1alpha1.ValueSource{{Key: "players", JSONPath: ".players"}},
	})
	probes := planOf(t, marker)
	for name, tc := range map[string]struct {
		state   v1alpha1.ContainerProbeState
		want    mark.Marks
		refused []string
	}{
		"both": {
			state: state(v1alpha1.ProbeSucceeded, `{"role":"primary","players":3}`),
			want:  mark.Marks{mark.Label("role"): text("primary"), mark.Annotation("players"): text("3")},
		},
		"a value that is not allowed removes its key": {
			state:   state(v1alpha1.ProbeSucceeded, `{"role":"leader","players":3}`),
			want:    mark.Marks{mark.Annotation("players"): text("3")},
			refused: []string{"label role NotAllowed"},
		},
		"another state": {
			state: state(v1alpha1.ProbeFailed, `{"role":"primary"}`),
			want:  mark.Marks{mark.Label("role"): text("down")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := mark.PodReport{Reported: true, States: mark.States{webIdle: tc.state}}
			owned := mark.Marks{mark.Label("role"): text("primary"), mark.Annotation("players"): text("2")}
			if got := mark.Desired(probes, report, owned); !got.Equal(tc.want) {
				t.Errorf("marks %v, want %v", got, tc.want)
			}
			var refused []string
			for _, r := range mark.RefusedValues(probes, report, owned) {
				refused = append(refused, fmt.Sprint(r.Key, " ", r.Refusal.Reason))
			}
			expect.Equal(t, "refused values", tc.refused, refused)
		})
	}
}

// The value of a stale state is not missing: no policy for the state declares the key. The marks of the pod show that the state was stale
// before the manager was started.
func TestStaleStatesRefuseNoValues(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("idle").Condition("x/idle").StaleAfter(30)).Build()
	marker.Spec.Probes[0].MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, LabelsFrom: []v1alpha1.ValueSource{{Key: "role", JSONPath: ".role"}}},
	}
	report := mark.PodReport{
		Reported: true, States: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "none")},
		Outage: staleness.Outage{Cause: staleness.AgentGone, StartUnknown: true},
	}
	for reason, want := range map[string]int{"": 1, v1alpha1.ReasonStale: 0} {
		owned := mark.Marks{mark.ConditionType("x/idle"): {Condition: mark.Condition{Reason: reason}}}
		if got := mark.RefusedValues(planOf(t, marker), report, owned); len(got) != want {
			t.Errorf("refused values with the reason %q: %v, want %d", reason, got, want)
		}
	}
}

// A probe without a condition whose only value is refused has no marks, like a stale one: they do not tell that it was stale.
func TestValuesAreRefusedIfMarksDoNotTell(t *testing.T) {
	marker := builders.Marker("ns", "web").Probe(builders.Probe("idle").StaleAfter(30)).Build()
	marker.Spec.Probes[0].MarkerPolicy = []v1alpha1.ProbeMarkerPolicy{
		{State: v1alpha1.ProbeSucceeded, LabelsFrom: []v1alpha1.ValueSource{{Key: "role", JSONPath: ".role"}}},
	}
	for message, want := range map[string]int{"none": 1, `{"role":"primary"}`: 0} {
		for name, down := range map[string]staleness.Outage{
			"current": {}, "not checked": {Cause: staleness.NotChecked},
			"gone for a second": {Cause: staleness.AgentGone, Length: time.Second, StartUnknown: true},
		} {
			report := mark.PodReport{Reported: true, States: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, message)}, Outage: down}
			if got := mark.RefusedValues(planOf(t, marker), report, mark.Marks{}); len(got) != want {
				t.Errorf("%s, message %s: refused values %v, want %d", name, message, got, want)
			}
		}
	}
}
