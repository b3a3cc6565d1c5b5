// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env starts a real API server and etcd for integration tests, with Seamark's CRDs
// installed and RBAC enabled. Both stop when the tests end, even if the test process crashes.
//
// A test package starts one API server in TestMain with [Main] and creates a namespace for
// each test. If tests need a server for themselves, TestMain is that of a [Pool]. Only the API server runs: there is no controller, scheduler or kubelet, so the
// tests create nodes and pods as plain objects.
package env
