// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"slices"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// find returns the way with the values.
func find(ways []*way, pods, perSlice int, whole bool) *way {
	return ways[slices.IndexFunc(ways, func(w *way) bool {
		return w.pods == pods && w.perSlice == perSlice && w.whole == whole
	})]
}

// output builds the rows and charts.
func (c *costs) output(ways []*way) harness.Output {
	bare, bareNoise := harness.Mean(c.bareCPU)
	bareBytes, _ := harness.Mean(c.bareBytes)
	// In a quick run, the difference of two readings may be 0.
	bare = max(bare, 0.01)
	cpuOf := func(name string, w *way) harness.Result {
		mean, noise := harness.Mean(w.cpu)
		return harness.Result{Name: name, Value: mean, Unit: "ms", Noise: noise, Floor: bare, FloorName: bareApply}
	}
	var out harness.Output
	slicesCurve, wholeCurve := harness.Series{Label: "slices of 8 pods"}, harness.Series{Label: "one status for the node (before)"}
	bytesCurve, wholeBytes := slicesCurve, wholeCurve
	floor := harness.Series{Label: bareApply, Dashed: true}
	floorBytes := floor
	for _, n := range sizes() {
		w, whole := find(ways, n, defaultSlice, false), find(ways, n, 0, true)
		result := cpuOf(cpuRow(n), w)
		if n == largest {
			result.Budget = harness.RatioAtMost(3)
		}
		out.Results = append(out.Results, result)
		add := func(s *harness.Series, values []float64) {
			mean, _ := harness.Mean(values)
			s.Points = append(s.Points, harness.Point{X: float64(n), Y: mean})
		}
		add(&slicesCurve, w.cpu)
		add(&wholeCurve, whole.cpu)
		add(&floor, c.bareCPU)
		add(&bytesCurve, kilobytes(w.bytes))
		add(&wholeBytes, kilobytes(whole.bytes))
		add(&floorBytes, kilobytes(c.bareBytes))
	}
	most, mostNoise := harness.Mean(find(ways, largest, defaultSlice, false).cpu)
	least, _ := harness.Mean(find(ways, smallest, defaultSlice, false).cpu)
	least = max(least, 0.01)
	bytes, bytesNoise := harness.Mean(find(ways, largest, defaultSlice, false).bytes)
	wholeMean, wholeNoise := harness.Mean(find(ways, largest, 0, true).bytes)
	out.Results = append(out.Results,
		harness.Result{Name: growthRow, Value: most, Unit: "ms", Noise: mostNoise, Floor: least, FloorName: "3 pods per node", Budget: harness.RatioAtMost(1.5)},
		cpuOf(sliceRow(4), find(ways, largest, 4, false)),
		cpuOf(sliceRow(16), find(ways, largest, 16, false)),
		cpuOf(wholeRow, find(ways, largest, 0, true)),
		harness.Result{Name: bytesRow, Value: bytes / 1000, Unit: "KB", Noise: bytesNoise, Floor: bareBytes / 1000, FloorName: bareApply, Budget: harness.AtMost(10)},
		harness.Result{Name: bytesAllRow, Value: wholeMean / 1000, Unit: "KB", Noise: wholeNoise, Floor: bareBytes / 1000, FloorName: bareApply},
	)
	out.Charts = []harness.Chart{
		{Name: cpuChart, Title: "API server's processor time per transition", X: "pods per node", Y: "ms",
			Series: []harness.Series{slicesCurve, wholeCurve, floor}},
		{Name: bytesChart, Title: "Bytes to etcd per transition", X: "pods per node", Y: "KB",
			Series: []harness.Series{bytesCurve, wholeBytes, floorBytes}},
	}
	out.Notes = append(out.Notes, fmt.Sprintf("The floor is the mean of %d rounds, ± %.1f %%.", len(c.bareCPU), 100*bareNoise))
	return out
}

func kilobytes(bytes []float64) []float64 {
	out := make([]float64, len(bytes))
	for i, b := range bytes {
		out[i] = b / 1000
	}
	return out
}
