// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// resultsVariable names the file that TestInPlaceOrRecreated of test/e2e/workloads has written.
const resultsVariable = "SEAMARK_COMPARE_RESULTS"

// The rows of the comparison of updates in place with recreated pods.
const (
	rowInPlaceTime   = "change the image of all pods in place: time"
	rowInPlaceWrites = "change the image of all pods in place: writes of pods by all programs"
	rowInPlaceNew    = "change the image of all pods in place: new pods"
)

// comparison is the part of the file that the page shows.
type comparison struct {
	Pods           int    `json:"pods"`
	MaxUnavailable string `json:"maxUnavailable"`
	Recreate       update `json:"recreate"`
	InPlace        update `json:"inPlace"`
}

type update struct {
	Seconds   float64 `json:"seconds"`
	PodWrites int     `json:"podWrites"`
	NewPods   int     `json:"newPods"`
}

func inPlaceMeasure() harness.Measure {
	return harness.Measure{
		Name: "workloads/in-place", Rows: []string{rowInPlaceTime, rowInPlaceWrites, rowInPlaceNew},
		Run: func(context.Context, *harness.Run) (harness.Output, error) {
			path := os.Getenv(resultsVariable)
			if path == "" {
				return harness.Output{}, fmt.Errorf("%w: %s is not set", harness.ErrSkipped, resultsVariable)
			}
			text, err := os.ReadFile(path) //nolint:gosec // The caller names its own file.
			if err != nil {
				return harness.Output{}, fmt.Errorf("read results: %w", err)
			}
			var c comparison
			if err := json.Unmarshal(text, &c); err != nil {
				return harness.Output{}, fmt.Errorf("parse results %s: %w", path, err)
			}
			return c.output(), nil
		},
	}
}

func (c comparison) output() harness.Output {
	const peer = "recreated pods"
	return harness.Output{
		Results: []harness.Result{
			{
				Name: rowInPlaceTime, Value: c.InPlace.Seconds, Unit: "s",
				Floor: c.Recreate.Seconds, FloorName: peer, Budget: harness.RatioAtMost(1),
			},
			{
				Name: rowInPlaceWrites, Value: float64(c.InPlace.PodWrites),
				Floor: float64(c.Recreate.PodWrites), FloorName: peer, Budget: harness.RatioAtMost(1),
			},
			{Name: rowInPlaceNew, Value: float64(c.InPlace.NewPods), Floor: float64(c.Recreate.NewPods), FloorName: peer},
		},
		Notes: []string{fmt.Sprintf("%d pods, `maxUnavailable: %s`.", c.Pods, c.MaxUnavailable)},
	}
}
