// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env starts a real API server and its etcd for integration tests, with
// Seamark's CRDs installed and RBAC in force, and stops both when the tests end,
// however they end.
//
// A test package starts one API server in TestMain with [Main] and gives each test a
// namespace of its own. Nothing but the API server runs: no controller, scheduler or
// kubelet, so nodes and pods are objects that the test writes itself.
package env
