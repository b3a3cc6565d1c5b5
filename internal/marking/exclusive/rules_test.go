// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package exclusive_test

import (
	"os"
	"strconv"
	"testing"
)

// TestAtMostOne runs managers with old views, whose requests arrive at any time, are refused or lost, on
// pods that change, and are deleted and created again under the same name. SEAMARK_MODEL_SEED=12 repeats
// one seed, and SEAMARK_MODEL_SEEDS=100000 runs more.
func TestAtMostOne(t *testing.T) {
	first, last := uint64(1), uint64(5000)
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_MODEL_SEEDS"), 10, 64); err == nil {
		last = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEAMARK_MODEL_SEED"), 10, 64); err == nil {
		first, last = n, n
	}
	taken := 0
	for seed := first; seed <= last; seed++ {
		n, err := run(seed, rules{})
		if taken += n; err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if t.Logf("%d hand-overs", taken); taken == 0 {
		t.Error("no pod ever took the marks")
	}
}

// TestEachRuleIsNeeded breaks one rule after the other: the model must find that two pods of a group have the marks, or that
// none gets them.
func TestEachRuleIsNeeded(t *testing.T) {
	const seeds = 20000
	for name, broken := range map[string]rules{
		"version of the pod":            {noVersion: true},
		"answer of the API server":      {noLook: true},
		"answer after the ticket":       {oldLook: true},
		"ticket as long as the marks":   {bare: true},
		"marks removed with a ticket":   {keep: true},
		"moves without marks":           {carry: true},
		"others that an election names": {deaf: true},
		"pods that have left":           {stay: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if _, err := run(seed+1, broken); err != nil {
					t.Logf("seed %d: %v", seed+1, err)
					return
				}
			}
			t.Errorf("no violation in %d seeds without the rule", seeds)
		})
	}
}
