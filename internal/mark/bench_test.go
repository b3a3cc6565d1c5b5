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

// BenchmarkDesired decides what one pod with the documented marks carries, from the plan
// and the report of its probe. The floor is the encoding of the marks, without which they
// can't be written.
func BenchmarkDesired(b *testing.B) {
	probes := planOf(b, builders.Marker("ns", "web").Probe(documented()).Build())
	report := mark.Report{Reported: true, States: mark.States{webIdle: state(v1alpha1.ProbeSucceeded, "idle")}}
	var marks mark.Marks
	floor.Compare(b, "x_of_encoding", func() {
		marks = mark.Desired(probes, report, mark.Marks{})
	}, func() {
		if _, err := json.Marshal(marks); err != nil || len(marks.Keys()) != 3 {
			b.Fatalf("the marks are %v, error %v", marks.Keys(), err)
		}
	})
}
