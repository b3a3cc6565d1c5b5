// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config embeds CustomResourceDefinitions and roles, for programs that validate objects without an API server or
// check an installation.
package config

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed crd/*/*_*.yaml */rbac.yaml rbac/manager.yaml rbac/agent.yaml sidecarsets/injector-rbac.yaml
var files embed.FS

// Definition returns the CustomResourceDefinition with the name, for example clonesets.apps.kruise.io, as YAML. It returns
// nil if there is none.
func Definition(name string) []byte { return Read(DefinitionPath(name)) }

// DefinitionPath returns the path below config/ of the CustomResourceDefinition with the name, empty if there is none.
func DefinitionPath(name string) string {
	resource, group, _ := strings.Cut(name, ".")
	found, _ := fs.Glob(files, path.Join("crd", "*", group+"_"+resource+".yaml"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// Read returns the file at the path below config/, a definition or a stream of roles and their bindings. It returns nil if
// there is none.
func Read(path string) []byte {
	content, _ := files.ReadFile(path)
	return content
}
