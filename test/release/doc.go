// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release tests the artifacts of `make release`: that two builds of one commit are identical, and that
// Seamark can be installed from them alone.
package release
