// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemonsets embeds the permissions for DaemonSets of apps.kruise.io, for programs that check an installation.
package daemonsets

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

// Roles returns the roles of seamark-workloads for DaemonSets and their bindings, as a stream of YAML documents.
func Roles() []byte { return roles }
