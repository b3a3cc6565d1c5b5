// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The stages by index.
const (
	stageStart = iota
	stageMarked
	stageIdle
	stageChanged
)

// hugePods is the number of pods to which memory is extrapolated.
const hugePods = 150_000

// perMark returns the processor time per marked pod, in milliseconds.
func (u resources) perMark() float64 {
	return (u.stages[stageMarked].CPU + u.stages[stageChanged].CPU).Seconds() * 1000 / float64(2*u.pods)
}

// memory returns the larger of the memory after all pods were marked the first and the second time,
// in MiB.
func (u resources) memory() float64 {
	return float64(max(u.stages[stageMarked].RSS, u.stages[stageChanged].RSS)) / mebibyte
}

// peak returns the maximum memory in all stages, in MiB.
func (u resources) peak() float64 {
	peak := uint64(0)
	for _, s := range u.stages {
		peak = max(peak, s.Peak)
	}
	return float64(peak) / mebibyte
}

func resourcesOutput(all []resources) harness.Output {
	small, middle, large := all[0], all[1], all[len(all)-1]
	perPod := func(a, b resources) float64 { return (b.memory() - a.memory()) * 1024 / float64(b.pods-a.pods) }
	huge := large.memory() + (large.memory()-small.memory())/float64(large.pods-small.pods)*float64(hugePods-large.pods)
	const client = "client of one bare apply"
	return harness.Output{
		Results: []harness.Result{
			{Name: rowCPU, Value: small.perMark(), Unit: "ms", Floor: small.bare, FloorName: client, Budget: harness.AtMost(0.5)},
			{Name: rowCPULarge, Value: large.perMark(), Unit: "ms", Floor: large.bare, FloorName: client, Budget: harness.AtMost(0.5)},
			{Name: rowMemory, Value: small.memory(), Unit: "MiB", Budget: harness.AtMost(60)},
			{Name: rowMemoryLarge, Value: large.memory(), Unit: "MiB", Budget: harness.AtMost(200)},
			{Name: rowPeakLarge, Value: large.peak(), Unit: "MiB"},
			{
				Name: rowMemoryPerPod, Value: perPod(middle, large), Unit: "KiB", Floor: perPod(small, middle),
				FloorName: "from 3,000 to 10,000 pods", Budget: harness.RatioAtMost(1.2),
			},
			{Name: rowMemoryHuge, Value: huge, Unit: "MiB"},
			{
				Name: rowStart, Value: large.stages[stageStart].CPU.Seconds() * 1000 / float64(large.pods), Unit: "ms",
				Floor: small.stages[stageStart].CPU.Seconds() * 1000 / float64(small.pods), FloorName: "3,000 pods",
			},
		},
		Charts:   []harness.Chart{memoryChart(all)},
		Profiles: large.profiles,
		Notes:    []string{large.table()},
	}
}

func memoryChart(all []resources) harness.Chart {
	marked, peak := harness.Series{Label: "all pods marked"}, harness.Series{Label: "maximum of all stages", Dashed: true}
	for _, u := range all {
		marked.Points = append(marked.Points, harness.Point{X: float64(u.pods), Y: u.memory()})
		peak.Points = append(peak.Points, harness.Point{X: float64(u.pods), Y: u.peak()})
	}
	return harness.Chart{
		Name: chartMemory, Title: "Memory (RSS) of the manager", X: "probed pods", Y: "MiB", Series: []harness.Series{marked, peak},
	}
}

// table returns the stages as a sentence.
func (u resources) table() string {
	var parts []string
	for _, s := range u.stages {
		parts = append(parts, fmt.Sprintf("%s: %.0f s, %d MiB (maximum %d MiB), %.1f s of processor time",
			s.name, s.took.Seconds(), s.RSS/mebibyte, s.Peak/mebibyte, s.CPU.Seconds()))
	}
	return fmt.Sprintf("Stages with %d nodes, %d pods and %d markers: %s.", u.nodes, u.pods, markers, strings.Join(parts, "; "))
}
