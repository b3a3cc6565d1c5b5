// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac embeds the service accounts, roles and bindings of the manager and the agent, for
// programs that check an installation.
package rbac

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed manager.yaml
var manager []byte

//go:embed agent.yaml
var agent []byte

// Manager returns the account of the manager with its roles, as a stream of YAML documents.
func Manager() []byte { return manager }

// Agent returns the account of the agents with its roles, as a stream of YAML documents.
func Agent() []byte { return agent }
