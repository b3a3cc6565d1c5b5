// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests the lifecycle of an installation on a real Kubernetes cluster: helm test,
// uninstall, installation over what an uninstall keeps, an upgrade to other values while pods are
// marked, and features that the upgrade enables. It restores the release at the end. Nothing else may
// use the cluster's installation at the same time.
package install
