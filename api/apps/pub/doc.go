// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pub contains the types and names that the workloads of group apps.kruise.io share:
// lifecycle hooks, in-place updates and the order of updates.
//
// +kubebuilder:object:generate=true
// +groupName=apps.kruise.io
package pub
