// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package broadcastjobs embeds the permissions for BroadcastJobs, for programs that check an installation.
package broadcastjobs

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

// Roles returns the roles of seamark-workloads for BroadcastJobs and their bindings, as a stream of YAML documents.
func Roles() []byte { return roles }
