// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule draws the faults of a run from a seed.
package schedule

import (
	"math/rand/v2"
	"time"
)

// Turn is one fault of a run.
type Turn struct {
	Fault string
	// Seed is that of the parameters of the fault, and of what users do meanwhile.
	Seed uint64
}

// Draw returns the faults in rounds: each round has every fault once, in a random order, so that a short run
// covers as much as possible. The same arguments return the same turns, and more rounds only add some.
func Draw(seed uint64, faults []string, rounds int) []Turn {
	random := rand.New(rand.NewPCG(seed, 0))
	var turns []Turn
	for range rounds {
		for _, i := range random.Perm(len(faults)) {
			turns = append(turns, Turn{Fault: faults[i], Seed: random.Uint64()})
		}
	}
	return turns
}

// Random returns the source of a turn's parameters, and another one of what users do, so that neither depends on
// how many numbers the other takes.
func (t Turn) Random() (parameters, users *rand.Rand) {
	return rand.New(rand.NewPCG(t.Seed, 1)), rand.New(rand.NewPCG(t.Seed, 2))
}

// Between returns a random duration from least to most, in whole tenths of a second.
func Between(random *rand.Rand, least, most time.Duration) time.Duration {
	const step = 100 * time.Millisecond
	return least + time.Duration(random.Int64N(int64((most-least)/step)+1))*step
}
