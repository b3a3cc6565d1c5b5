// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marking is the room of the pure decisions between a marker and a mark: which probes a pod
// gets (plan), how an agent divides states into reports (report), which marks follow from them
// (mark), and why a pod has none (diagnosis).
package marking
