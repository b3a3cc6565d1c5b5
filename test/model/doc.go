// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model plays a planner of workloads and the executor of its steps against a simulated cluster:
// an API server, kubelets, users, lagging caches, lost answers, crashes between two writes, and two
// leaders at once. A run is
// a function of its seed. It has two phases. In the first, everything happens in random order, and
// the invariants are checked after every write. In the second, no fault and no change by a user
// happens any more: the state must become the expected one within a bounded number of rounds, and a
// new leader must then write nothing.
//
// The package is for tests only. A test of a planner writes a Planner around it, the changes that
// users make to the set, and what the planner must keep. Fuzz runs them. A failed run prints its
// seed and its last steps; the environment variable SEAMARK_MODEL_SEED repeats only this seed, and
// SEAMARK_MODEL_SEEDS changes how many seeds run.
package model
