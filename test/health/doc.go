// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health runs the health checks of delivery tools with objects that seamark-workloads serves on a real API server: the
// checks for OpenKruise's kinds are those that users have configured.
package health
