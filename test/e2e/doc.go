// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests an installation of Seamark on a real Kubernetes cluster, with the API
// server, kubelet and container runtime, the images and the chart. The tests run as root on the
// machine that runs the cluster, because some of them kill daemons.
package e2e
