// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the definitions of Seamark's kinds, for programs that check objects
// without an API server.
package crd

import (
	// Embedding files needs this.
	_ "embed"
)

//go:embed bases/apps.kruise.io_podprobemarkers.yaml
var podProbeMarkers []byte

// PodProbeMarkers returns the CustomResourceDefinition of PodProbeMarkers, as YAML.
func PodProbeMarkers() []byte { return podProbeMarkers }
