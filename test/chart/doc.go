// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests that the Helm chart, with its default values, installs what the
// kustomization config/default does. Both are rendered by the pinned tools; no cluster
// is needed.
package chart
