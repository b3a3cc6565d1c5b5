// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/seamark-dev/seamark/internal/report"
	"github.com/seamark-dev/seamark/test/floor"
)

// BenchmarkDecide decides on the report of a node with 30 pods and 90 probes, one of which
// has changed. It compares with the encoding of the report, which every write requires.
func BenchmarkDecide(b *testing.B) {
	plan := report.Plan{Generation: 1}
	states := report.States{}
	for i := range 30 {
		pod := fmt.Sprint("pod-", i)
		plan.Pods = append(plan.Pods, podPlan(pod, "m#p", "m#q", "m#r"))
		for _, probe := range []string{"m#p", "m#q", "m#r"} {
			states[key(b, pod, probe)] = known(succeeded, "ok", 10, 0)
		}
	}
	first := report.Decide(at(10), plan, report.Ledger{}, states)
	ledger := report.Ledger{}.Wrote(at(10), first.Status)
	states[key(b, "pod-7", "m#q")] = known(failed, "no", 20, 20)
	var decision report.Decision
	floor.Compare(b, "x_of_encoding", func() {
		decision = report.Decide(at(20), plan, ledger, states)
	}, func() {
		if _, err := json.Marshal(decision.Status); err != nil || !decision.Write {
			b.Fatalf("write: %t, error %v", decision.Write, err)
		}
	})
}
