// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "strings"

// Closest returns the candidate that is most similar to the word, ignoring case, and the first of
// several. It is empty if none differs in at most a third of the word's characters, or in one.
func Closest(word string, candidates []string) string {
	least, best := max(len(word)/3, 1)+1, ""
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			least, best = d, candidate
		}
	}
	return best
}

// distance returns the number of characters to insert, delete or replace to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
