// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Seamark as it is installed, on a real Kubernetes: real API server,
// kubelet and container runtime, the released images, the chart. The tests run on the
// machine that runs the cluster, as root, because some of them kill daemons.
package e2e
