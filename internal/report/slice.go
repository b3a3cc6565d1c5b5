// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"
	"strings"
)

// NameOf returns the name of a node's slice.
func NameOf(node string, number int) string { return node + "." + strconv.Itoa(number) }

// NumberOf returns the number of a node's slice. It returns false if NameOf does not return
// the name for any number, which includes numbers with leading zeros.
func NumberOf(node, name string) (int, bool) {
	suffix, found := strings.CutPrefix(name, node+".")
	if !found {
		return 0, false
	}
	number, err := strconv.Atoi(suffix)
	if err != nil || number < 0 || strconv.Itoa(number) != suffix {
		return 0, false
	}
	return number, true
}
