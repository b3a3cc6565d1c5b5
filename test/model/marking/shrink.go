// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package marking

import "slices"

// Shrink removes steps from a case that fails as long as it still does, and returns the smallest case that it found:
// no part of it that was tried can be removed. The time is bounded: it plays at most limit cases.
func Shrink(c *Case, limit int, fails func(*Case) bool) *Case {
	best := *c
	for size := max(1, len(best.Steps)/2); size > 0; {
		removed := false
		for at := 0; at < len(best.Steps) && limit > 0; {
			limit--
			smaller := Case{Seed: best.Seed, Steps: slices.Delete(slices.Clone(best.Steps), at, min(at+size, len(best.Steps)))}
			if fails(&smaller) {
				best, removed = smaller, true
				continue
			}
			at += size
		}
		if size == 1 && !removed || limit <= 0 {
			break
		}
		size = max(1, size/2)
	}
	return &best
}
