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
