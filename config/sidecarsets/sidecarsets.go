// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sidecarsets embeds the permissions for SidecarSets, for programs that check an installation.
package sidecarsets

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

//go:embed injector-rbac.yaml
var injector []byte

// Roles returns the roles of seamark-workloads for SidecarSets and their bindings, as a stream of YAML documents.
func Roles() []byte { return roles }

// Injector returns the roles of the injectors and their bindings, as a stream of YAML documents.
func Injector() []byte { return injector }
