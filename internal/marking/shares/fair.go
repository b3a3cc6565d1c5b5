// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair divides budgets between tenants.
package fair

import (
	"maps"
	"math"
	"slices"
)

// Share divides the budget: everyone gets the smaller of the demand and the returned share, and
// all of this together is at most the budget. Whoever needs less than an equal share leaves the
// rest to the others.
func Share(demands map[string]int, budget int) int {
	sorted := slices.Sorted(maps.Values(demands))
	for i, demand := range sorted {
		share := max(0, budget) / (len(sorted) - i)
		if demand > share {
			return share
		}
		budget -= demand
	}
	return math.MaxInt
}
