// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests the life of an installation on a real Kubernetes: helm test,
// upgrade and rollback while pods are marked, uninstall and what it leaves, installation
// over what is left. It ends with the release as it found it. Nothing else may use the
// cluster's installation meanwhile.
package install
