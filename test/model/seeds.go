// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"os"
	"strconv"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

const (
	// SeedVariable is the environment variable that selects one seed.
	SeedVariable = "SEAMARK_MODEL_SEED"
	// SeedsVariable is the environment variable that replaces the number of seeds.
	SeedsVariable = "SEAMARK_MODEL_SEEDS"
)

// Fuzz runs a fuzz target over seeds. Without -fuzz it runs the seeds 1 to n, or to that of
// SEAMARK_MODEL_SEEDS, and more seeds that have failed before, or only the one of SEAMARK_MODEL_SEED.
func Fuzz(f *testing.F, n uint64, config func(seed uint64) Config, more ...uint64) {
	f.Helper()
	first := uint64(1)
	if seeds, ok := number(f, SeedsVariable); ok {
		n = seeds
	}
	if seed, ok := number(f, SeedVariable); ok {
		first, n, more = seed, seed, nil
	}
	for seed := first; seed <= n; seed++ {
		f.Add(seed)
	}
	for _, seed := range more {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		expect.NoError(t, Run(seed, config(seed)))
	})
}

// number returns the value of an environment variable, if it is set.
func number(f *testing.F, name string) (uint64, bool) {
	f.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, false
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		f.Fatalf("%s: %q is invalid: must be a number", name, text)
	}
	return value, true
}
