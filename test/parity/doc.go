// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parity compares Seamark's probes with the kubelet's. Its tests run the probers of both
// against the same servers. The kubelet's worker and Seamark's evaluator receive the same outcomes
// for each run. The package has no other code. docs/judging.md describes the results.
package parity
