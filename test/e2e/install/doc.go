// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests the lifecycle of an installation on a real Kubernetes cluster: helm
// test, upgrade and rollback while pods are marked, uninstall, and installation over what an
// uninstall keeps. It restores the release at the end. Nothing else may use the cluster's
// installation at the same time.
package install
