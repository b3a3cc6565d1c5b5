// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Closest returns the candidate that is most similar to the word, ignoring case, and the first of
// several. It is empty if more than a third of the word's characters, rounded up, differ in all of
// them.
func Closest(word string, candidates []string) string {
	least, best := (len(word)+2)/3+1, ""
	for _, candidate := range candidates {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			least, best = d, candidate
		}
	}
	return best
}
