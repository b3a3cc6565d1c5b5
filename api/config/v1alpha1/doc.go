// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the configuration files of Seamark's programs, group
// config.seamark.dev, version v1alpha1: a ManagerConfiguration and an AgentConfiguration.
// They are files and no objects of the API server.
//
// A field that is absent, empty or zero takes its default, which its documentation names.
//
// +kubebuilder:object:generate=true
// +groupName=config.seamark.dev
package v1alpha1
