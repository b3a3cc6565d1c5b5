// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/floor"
)

// FuzzDesired generates markers and states from the seed. Every label must come from the
// state of the first probe that declares its key, and a change of states must not give a
// key to another probe.
func FuzzDesired(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 2))
		probes := planOf(t, randomMarkers(rng)...)
		report := mark.PodReport{Reported: true, States: randomStates(rng)}
		got := mark.Desired(probes, report, nil)

		want := map[string]string{}
		declared := map[string]bool{}
		for _, probe := range probes {
			mine := map[string]bool{}
			for _, policy := range probe.Source.MarkerPolicy {
				for key, value := range policy.Labels {
					if !declared[key] && report.States[probe.ID].State == policy.State {
						want[key] = value
					}
					mine[key] = true
				}
			}
			for key := range mine {
				declared[key] = true
			}
		}
		labels := map[string]string{}
		for _, name := range got.Names(mark.KindLabel) {
			labels[name] = got[mark.Label(name)].Text
		}
		expect.Equal(t, "labels", want, labels)
		claims, conflicts := mark.Claim(probes)
		for _, c := range conflicts {
			if claims[c.Key] != c.Winner || c.Winner == c.Loser {
				t.Errorf("conflict %v: key belongs to %v", c, claims[c.Key])
			}
		}
		for _, key := range got.Keys() {
			if _, known := report.States[claims[key]]; !known {
				t.Errorf("%s is set, but its probe %v has no state", key, claims[key])
			}
		}
		if again := mark.Desired(probes, report, got); !again.Equal(got) {
			t.Errorf("marks depend on the existing marks: %v, then %v", got, again)
		}
	})
}

func randomMarkers(rng *rand.Rand) []*v1alpha1.PodProbeMarker {
	states := []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown}
	var markers []*v1alpha1.PodProbeMarker
	for _, name := range []string{"web", "my-web", "api"} {
		b := builders.Marker("ns", name)
		for i := range 1 + rng.IntN(3) {
			probe := builders.Probe(fmt.Sprint("p", i))
			if rng.IntN(2) == 0 {
				probe.Condition(fmt.Sprint("c", rng.IntN(3)))
			}
			for range rng.IntN(3) {
				probe.Label(states[rng.IntN(2)], fmt.Sprint("l", rng.IntN(4)), fmt.Sprint(name, i))
			}
			b.Probe(probe)
		}
		markers = append(markers, b.Build())
	}
	return markers
}

func randomStates(rng *rand.Rand) mark.States {
	all := []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown}
	states := mark.States{}
	for _, marker := range []string{"web", "my-web", "api", "gone"} {
		for i := range 3 {
			if rng.IntN(3) > 0 {
				states[identity.ID{Marker: marker, Probe: fmt.Sprint("p", i)}] = v1alpha1.ContainerProbeState{State: all[rng.IntN(3)]}
			}
		}
	}
	return states
}

// BenchmarkDesired computes the marks of one pod with the documented probe from its plan and
// its report. The floor is the encoding of the marks, which every write needs.
func BenchmarkDesired(b *testing.B) {
	probes := planOf(b, builders.Marker("ns", "web").Probe(documented()).Build())
	report := mark.PodReport{Reported: true, States: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "idle")}}
	marks := mark.Desired(probes, report, nil)
	if len(marks) != 3 {
		b.Fatalf("marks %v, want 3", marks.Keys())
	}
	var body struct {
		Labels      map[string]string     `json:"labels"`
		Annotations map[string]string     `json:"annotations"`
		Conditions  []corev1.PodCondition `json:"conditions"`
	}
	idle := marks[mark.ConditionType("game.io/idle")].Condition
	body.Labels = map[string]string{"gameserver-idle": marks[mark.Label("gameserver-idle")].Text}
	body.Annotations = map[string]string{"cost": marks[mark.Annotation("cost")].Text}
	body.Conditions = []corev1.PodCondition{{
		Type: "game.io/idle", Status: idle.Status, Message: idle.Message,
		LastProbeTime: idle.LastProbeTime, LastTransitionTime: idle.LastTransitionTime,
	}}
	floor.Compare(b, "x_of_encoding", func() {
		mark.Desired(probes, report, nil)
	}, func() {
		if _, err := json.Marshal(&body); err != nil {
			b.Fatal(err)
		}
	})
}
