// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the configuration files of Seamark's programs, group
// config.seamark.dev, version v1alpha1: ManagerConfiguration, AgentConfiguration and
// WorkloadsConfiguration. They are files, not objects of the API server.
//
// A field that is absent, empty or zero takes the default that its documentation states.
//
// +groupName=config.seamark.dev
package v1alpha1
