// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/floor"
)

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
