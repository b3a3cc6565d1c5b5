// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serverless embeds the permissions of the webhook for pods on virtual nodes, for programs that check an
// installation.
package serverless

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

// Roles returns the roles of the webhook for pods on virtual nodes and their bindings, as a stream of YAML
// documents.
func Roles() []byte { return roles }
