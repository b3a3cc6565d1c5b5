// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// pluginArchive is an archive with kubectl-seamark for one platform.
type pluginArchive struct {
	platform
	// file is the name of the archive, and sum its SHA-256 sum in hexadecimal digits.
	file, sum string
}

const pluginDescription = `Seamark runs custom probes in pods and marks the pods with the results.
The plugin shows the probes and marks of pods, and runs probes of manifests
as local processes without a cluster.
`

// pluginManifest returns the manifest with which krew installs kubectl-seamark.
func (r *run) pluginManifest(archives []pluginArchive) ([]byte, error) {
	var platforms []map[string]any
	for _, a := range archives {
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]string{"os": a.os, "arch": a.arch}},
			"uri":      strings.TrimSuffix(r.URL, "/") + "/" + a.file,
			"sha256":   a.sum,
			"bin":      a.platform.file(plugin),
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]string{"name": "seamark"},
		"spec": map[string]any{
			"version": r.version, "homepage": repository, "platforms": platforms,
			"shortDescription": "Show and test custom probes of pods", "description": pluginDescription,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of the plugin: %w", err)
	}
	return text, nil
}
