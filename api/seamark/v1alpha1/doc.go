// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the types of Seamark's own API, group seamark.dev, version
// v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=seamark.dev
package v1alpha1
