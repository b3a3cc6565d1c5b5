// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// adoptOrphans does nothing: orphans always become children of the first process.
func adoptOrphans() {}

// awaitExit returns false: the system can't wait for a child without reaping it.
func awaitExit(int) bool { return false }

// descendants returns nothing without /proc, so that only process groups are killed.
func descendants(int) []proc { return nil }
