// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/report"
	"github.com/seamark-dev/seamark/test/floor"
)

// BenchmarkDecide decides on the report of a node with one change. It compares with the encoding
// of the slice that is written, which every write requires.
func BenchmarkDecide(b *testing.B) {
	cases := map[string]struct {
		pods, probes int
		message      string
	}{
		"3 pods":                          {3, 3, "ok"},
		"30 pods":                         {30, 3, "ok"},
		"110 pods":                        {110, 3, "ok"},
		"110 pods, messages of 1 KiB":     {110, 3, strings.Repeat("m", 1024)},
		"250 pods × 8, messages of 1 KiB": {250, 8, strings.Repeat("m", 1024)},
	}
	for name, tc := range cases {
		b.Run(name, func(b *testing.B) {
			plan, states := report.Plan{Generation: 1}, report.States{}
			largePlan(b, &plan, states, "games", tc.pods, tc.probes, tc.message)
			record, _ := wrote(at(10), plan, report.Record{}, states)
			record = report.Decide(at(11), plan, record, states, nil).Record
			changed := map[string]bool{plan.Pods[tc.pods/2].UID: true}
			states[key(b, plan.Pods[tc.pods/2].Name, plan.Pods[0].Probes[1].Name)] = known(failed, tc.message, 20, 20)
			var decision report.Decision
			floor.Compare(b, "x_of_encoding", func() {
				decision = report.Decide(at(20), plan, record, states, changed)
			}, func() {
				if _, err := json.Marshal(decision.Writes[0].Pods); err != nil || len(decision.Writes) != 1 {
					b.Fatalf("%d writes, error %v", len(decision.Writes), err)
				}
			})
		})
	}
}

// BenchmarkWrote records one of the writes of a node.
func BenchmarkWrote(b *testing.B) {
	for _, pods := range []int{8, 110, 250} {
		b.Run(fmt.Sprint(pods, " pods"), func(b *testing.B) {
			plan, states := report.Plan{Generation: 1}, report.States{}
			largePlan(b, &plan, states, "games", pods, 3, "ok")
			record, d := wrote(at(10), plan, report.Record{}, states)
			b.ReportAllocs()
			for b.Loop() {
				record.Wrote(at(20), d.Writes[0])
			}
		})
	}
}

// BenchmarkMessages plays a node of 110 pods whose messages change every second, at different times of
// it. An operation is one second of the node.
func BenchmarkMessages(b *testing.B) {
	for _, updates := range []v1alpha1.MessageUpdates{v1alpha1.MessageUpdatesLimited, v1alpha1.MessageUpdatesImmediate} {
		b.Run(string(updates), func(b *testing.B) {
			n, second := newNode(b, updates, map[string]int{"a": 110}), 0
			play := func() {
				second++
				for tenth := range 10 {
					for i := range 11 {
						n.sayOne(fmt.Sprint("a-", 11*tenth+i), strconv.Itoa(second))
					}
					n.step()
				}
			}
			for range 60 { // Empty the buckets.
				play()
			}
			n.reports["a"], n.writes = 0, 0
			b.ReportAllocs()
			for b.Loop() {
				play()
			}
			b.ReportMetric(float64(n.writes)/float64(b.N), "report_writes/s")
			b.ReportMetric(float64(n.reports["a"])/float64(b.N), "pod_writes/s")
		})
	}
}
