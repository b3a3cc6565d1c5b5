// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// awaitExit reports false at once: the child can only be waited for.
func awaitExit(int) bool { return false }

// groupRuns can't tell what still runs from what has only not been waited for.
func groupRuns(int) bool { return false }

// carriers finds nothing where there is no /proc: only groups are held.
func carriers(string) []int { return nil }
