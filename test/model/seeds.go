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
	first, last, one := Seeds(f, n)
	if one {
		more = nil
	}
	for seed := first; seed <= last; seed++ {
		f.Add(seed)
	}
	for _, seed := range more {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		expect.NoError(t, Run(seed, config(seed)))
	})
}

// Seeds returns the first and the last seed to run, which are 1 and n unless the environment says otherwise, and whether it
// selects one.
func Seeds(tb testing.TB, n uint64) (first, last uint64, one bool) {
	tb.Helper()
	if seed := number(tb, SeedVariable, 0); seed > 0 {
		return seed, seed, true
	}
	return 1, number(tb, SeedsVariable, n), false
}

// number returns the value of an environment variable, or the default.
func number(tb testing.TB, name string, value uint64) uint64 {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return value
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		tb.Fatalf("%s: %q is invalid: must be a number", name, text)
	}
	return value
}
