// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imagepulls embeds the permissions for ImagePullJobs, for programs that check an installation.
package imagepulls

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed rbac.yaml
var roles []byte

// Roles returns the roles of seamark-workloads for ImagePullJobs and their bindings, as a stream of YAML documents.
func Roles() []byte { return roles }
