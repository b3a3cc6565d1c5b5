// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads embeds the permissions of seamark-workloads, for programs that check an
// installation.
package workloads

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

// Roles returns the roles of seamark-workloads and their bindings, as a stream of YAML
// documents.
func Roles() []byte { return roles }
