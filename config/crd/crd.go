// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the CustomResourceDefinitions, for programs that validate objects
// without an API server.
package crd

import (
	// Required by go:embed.
	_ "embed"
)

//go:embed bases/apps.kruise.io_podprobemarkers.yaml
var podProbeMarkers []byte

// PodProbeMarkers returns the CustomResourceDefinition of PodProbeMarkers, as YAML.
func PodProbeMarkers() []byte { return podProbeMarkers }
