// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strconv"
	"strings"
)

// SliceName returns the name of a slice of a node's plan or report.
func SliceName(node string, number int) string { return node + "." + strconv.Itoa(number) }

// SliceNumber returns the number of a slice of a node's plan or report. It returns false if
// SliceName does not return the name for any number, which includes numbers with leading zeros.
func SliceNumber(node, name string) (int, bool) {
	suffix, own := strings.CutPrefix(name, node)
	digits, dot := strings.CutPrefix(suffix, ".")
	number, err := strconv.ParseUint(digits, 10, 31)
	if !own || !dot || err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	return int(number), true
}
