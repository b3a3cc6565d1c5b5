// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package mark_test

import (
	"encoding/json"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/mark"
	"github.com/seamark-dev/seamark/test/builders"
	"github.com/seamark-dev/seamark/test/floor"
)

// BenchmarkDesired computes the marks of one pod with the documented probe from its plan and
// its report. The floor is the encoding of the marks, which every write needs.
func BenchmarkDesired(b *testing.B) {
	probes := planOf(b, builders.Marker("ns", "web").Probe(documented()).Build())
	report := mark.PodReport{Reported: true, States: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "idle")}}
	var marks mark.Marks
	encoded := map[string]map[string]mark.Value{}
	floor.Compare(b, "x_of_encoding", func() {
		marks = mark.Desired(probes, report, nil)
	}, func() {
		for key, value := range marks {
			encoded[string(key.Kind)] = map[string]mark.Value{key.Name: value}
		}
		if _, err := json.Marshal(encoded); err != nil || len(marks) != 3 {
			b.Fatalf("marks %v, error %v", marks.Keys(), err)
		}
	})
}
