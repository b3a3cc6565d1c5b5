// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests that the Helm chart with its default values installs the same objects
// as the kustomization config/default, and that each value has its documented effect. Both
// are rendered by the pinned tools; no cluster is needed.
package chart
