// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart packages the Helm chart of a release: with the version, and with images that are pinned by digest.
package chart

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/seamark-dev/seamark/hack/release/internal/archive"
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
	entries, err := read(folder)
	if err != nil {
		return Chart{}, fmt.Errorf("read chart %s: %w", folder, err)
	}
	var made Chart
	for i := range entries {
		entry := &entries[i]
		switch entry.Name {
		case "Chart.yaml":
			entry.Data, err = setAll(entry.Data, []setting{
				{[]string{"version"}, o.Version.Number()},
				{[]string{"appVersion"}, string(o.Version)},
			})
			if err == nil {
				made.Metadata, err = yaml.YAMLToJSON(entry.Data)
			}
		case "values.yaml":
			entry.Data, err = setAll(entry.Data, o.values())
		}
		if err != nil {
			return Chart{}, fmt.Errorf("%s of the chart: %w", entry.Name, err)
		}
		// The folder in the archive has the name of the chart.
		entry.Name = path.Join("seamark", entry.Name)
	}
	var out bytes.Buffer
	if err := archive.TarGzip(&out, entries, at); err != nil {
		return Chart{}, fmt.Errorf("package the chart: %w", err)
	}
	made.Package = out.Bytes()
	return made, nil
}

// values returns the values that differ from those in the repository.
func (o Options) values() []setting {
	all := []setting{{[]string{"image", "registry"}, o.Registry}}
	for component, digest := range o.Digests {
		all = append(all, setting{[]string{component, "image", "digest"}, digest})
	}
	return all
}

// read returns the files of a folder in the order of their names.
func read(folder string) ([]archive.Entry, error) {
	var entries []archive.Entry
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		entries = append(entries, archive.Entry{Name: filepath.ToSlash(inside), Mode: 0o644, Data: data})
		return nil
	})
	return entries, err
}
