// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recipes runs the recipes of examples/recipes on the local cluster, with the real programs. `make test-recipes`
// installs Seamark, loads the images and selects recipes. Elections are counted by the programs' own counters.
package recipes
