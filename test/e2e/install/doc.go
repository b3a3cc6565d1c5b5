// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests the lifecycle of an installation on a real Kubernetes cluster: helm test,
// uninstall, installation over what an uninstall keeps, upgrade from the previous release and rollback
// to it while pods are marked, and features that an upgrade enables. It restores the release at the
// end. Nothing else may use the cluster's installation at the same time.
package install
