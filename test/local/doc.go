// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local runs the examples under `seamark local`, and looks at what it prints.
package local
