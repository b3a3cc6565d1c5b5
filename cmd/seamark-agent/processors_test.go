// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

func TestProcessors(t *testing.T) {
	cases := map[string]struct {
		load float64
		most int
		want int
	}{
		"no probes":              {0, 8, 1},
		"110 pods, three probes": {143, 8, 1},
		"many probes":            {1000, 8, 5},
		"more than the machine":  {5000, 8, 8},
		"one processor":          {5000, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "processors", tc.want, processors(tc.load, tc.most))
		})
	}
}

// TestAdaptProcessors checks that the number follows the plan in both directions, and that the
// environment takes precedence.
func TestAdaptProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(3)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	t.Setenv("GOMAXPROCS", "")
	adapt := adaptProcessors(10_000)
	for _, step := range []struct {
		load float64
		want int
	}{{0, 1}, {300, 2}, {5000, 3}, {10, 1}} {
		adapt(step.load)
		expect.Equal(t, fmt.Sprintf("GOMAXPROCS with %v runs per second", step.load), step.want, runtime.GOMAXPROCS(0))
	}
	runtime.GOMAXPROCS(3)
	limited := adaptProcessors(300)
	limited(5000)
	expect.Equal(t, "GOMAXPROCS with a rate of 300", 2, runtime.GOMAXPROCS(0))
	t.Setenv("GOMAXPROCS", "2")
	if adaptProcessors(10_000) != nil {
		t.Error("the agent changes GOMAXPROCS although the environment sets it")
	}
}
