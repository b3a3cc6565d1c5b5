// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// awaitExit returns false: the system can't wait for a child without reaping it.
func awaitExit(int) bool { return false }

// groupRuns returns false: it can't distinguish running processes from zombies.
func groupRuns(int) bool { return false }

// carriers returns nothing without /proc, so that only process groups are killed.
func carriers(string) []int { return nil }

// adoptOrphans does nothing: orphans always become children of the first process.
func adoptOrphans() {}

// ownGroupID returns 0.
func ownGroupID() int { return 0 }

// waitFor does nothing, because there are no adopted children.
func waitFor(int) {}

// descendants returns nothing without /proc.
func descendants(int) []proc { return nil }

// stat returns nothing without /proc.
func stat(int) (proc, bool) { return proc{}, false }

// relationOf is not called, because there are no descendants.
func relationOf(int, string) (relation, string) { return otherRun, "" }

// setOf returns nothing without /proc.
func setOf(int, string) string { return "" }
