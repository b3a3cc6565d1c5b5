// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs the examples with `seamark local` and checks its output.
package local
