// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package krew writes the manifest with which krew installs kubectl-seamark.
package krew

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

// Archive is an archive with kubectl-seamark for one platform.
type Archive struct {
	// OS and Arch are the platform in Go's names.
	OS, Arch string
	// File is the name of the archive, and SHA256 its sum in hexadecimal digits.
	File, SHA256 string
	// Program is the name of the program in the archive.
	Program string
}

// The fields of a plugin manifest of krew.googlecontainertools.github.com/v1alpha2.
type (
	plugin struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       spec              `json:"spec"`
	}
	spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Platforms        []platform `json:"platforms"`
	}
	platform struct {
		Selector selector `json:"selector"`
		URI      string   `json:"uri"`
		SHA256   string   `json:"sha256"`
		Bin      string   `json:"bin"`
	}
	selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
)

const description = `Seamark runs custom probes in pods and marks the pods with the results.
The plugin shows the probes and marks of pods, and runs probes of manifests
as local processes without a cluster.
`

// Manifest returns the manifest. The archives are downloaded from the folder at a URL.
func Manifest(v version.Version, homepage, url string, archives []Archive) ([]byte, error) {
	made := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "seamark"},
		Spec: spec{
			Version: string(v), Homepage: homepage,
			ShortDescription: "Show and test custom probes of pods", Description: description,
		},
	}
	for _, a := range archives {
		made.Spec.Platforms = append(made.Spec.Platforms, platform{
			Selector: selector{MatchLabels: map[string]string{"os": a.OS, "arch": a.Arch}},
			URI:      strings.TrimSuffix(url, "/") + "/" + a.File, SHA256: a.SHA256, Bin: a.Program,
		})
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of the plugin: %w", err)
	}
	return text, nil
}
