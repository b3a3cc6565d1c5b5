// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"os"
	"strconv"
	"testing"
)

// SeedVariable is the environment variable that selects one seed.
const SeedVariable = "SEAMARK_MODEL_SEED"

// Fuzz runs a fuzz target over seeds. Without -fuzz it runs the seeds 1 to n, or the one of
// SEAMARK_MODEL_SEED.
func Fuzz(f *testing.F, n uint64, config func(seed uint64) Config) {
	f.Helper()
	first := uint64(1)
	if text := os.Getenv(SeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			f.Fatalf("%s: %q is invalid: must be a number", SeedVariable, text)
		}
		first, n = seed, seed
	}
	for seed := first; seed <= n; seed++ {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := Run(seed, config(seed)); err != nil {
			t.Fatal(err)
		}
	})
}
