// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart packages the Helm chart of a release: with the version, and with images that are pinned by digest.
package chart

import (
	"fmt"
	"path"
	"testing/fstest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/image"
	"github.com/seamark-dev/seamark/hack/release/internal/version"
)

// Options describe the chart of a release.
type Options struct {
	// Version is the version of the release. Without its letter v it is also the version of the chart.
	Version version.Version
	// Registry is the registry and path of the images.
	Registry string
	// Digests are the digests of the images by component, which is the name of its part of the values: manager,
	// agent, workloads.
	Digests map[string]string
}

// Chart is a packaged chart.
type Chart struct {
	// Package is the archive, as `helm package` writes it.
	Package []byte
	// Metadata is the content of Chart.yaml as JSON.
	Metadata []byte
}

// Build packages the chart in a folder. All files have the given time.
func Build(folder string, o Options, at time.Time) (Chart, error) {
	files, err := image.ReadFolder(folder)
	if err != nil {
		return Chart{}, err
	}
	// The folder in the archive has the name of the chart.
	inside := fstest.MapFS{}
	for name, file := range files {
		inside[path.Join("seamark", name)] = file
	}
	settings := map[string]map[string]string{
		"Chart.yaml":  {"version": o.Version.Number(), "appVersion": string(o.Version)},
		"values.yaml": {"image.registry": o.Registry},
	}
	for component, digest := range o.Digests {
		settings["values.yaml"][component+".image.digest"] = digest
	}
	for name, values := range settings {
		file := files[name]
		if file == nil {
			return Chart{}, fmt.Errorf("the chart in %s has no %s", folder, name)
		}
		for path, value := range values {
			if file.Data, err = set(file.Data, path, value); err != nil {
				return Chart{}, fmt.Errorf("%s of the chart: %w", name, err)
			}
		}
	}
	metadata, err := yaml.YAMLToJSON(files["Chart.yaml"].Data)
	if err != nil {
		return Chart{}, fmt.Errorf("metadata of the chart: %w", err)
	}
	packaged, err := image.TarGzip(inside, at)
	if err != nil {
		return Chart{}, fmt.Errorf("package the chart: %w", err)
	}
	return Chart{Package: packaged, Metadata: metadata}, nil
}
