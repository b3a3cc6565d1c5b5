// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marking plays the controllers of the manager and the agents of up to three nodes against a simulated
// cluster in one process and in virtual time. The programs are the real ones: the controllers with their event
// handlers, and whole agents with their HTTP clients, workers and reporters. What surrounds them is simulated: the
// API server with watches that lag, end or expire, lost responses, refused and unreachable requests; the caches of
// managers, each of whose kinds and handlers lags on its own; work queues; container runtimes, probes, users, nodes
// and their clocks.
//
// A Case is a list of steps with numbers. All that happens in a step follows from its numbers, so a case can be
// repeated, and steps can be removed from it: Shrink does so with a case that fails. At times and at the end, no
// fault happens for a while, and then the marks of all pods must be those of the rules in rules.go, which are
// written from docs/concepts.md and do not call the packages that they check. lost.go has nodes and agents that are
// lost, and the rules of docs/stale.md, values.go those of values from messages and of startup probes, and counts.go
// those of the status of markers. While everything happens, no manager may write
// a mark that no rule has allowed at any time, release a marker of which it sees marks, or delete the plan of a Node
// that exists. At rest nothing is written, a change costs a bounded number of writes, and a restart none. Nodes and
// agents that are lost stay so until the end: then all return, and so must the marks.
//
// The package is for tests only. It needs one processor, so that goroutines that are ready at the same time run in
// the same order: see TestMain.
package marking
