// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seamark-dev/seamark/internal/local/manifest"
)

// stdin is the file name that stands for the standard input.
const stdin = "-"

// read reads all manifests.
func (o *LocalOptions) read(ctx context.Context) (manifest.Objects, error) {
	sources, err := gather(o.Filenames, o.In)
	if err != nil {
		return manifest.Objects{}, err
	}
	options := manifest.Options{}
	if o.Replicas >= 0 {
		options.Replicas = &o.Replicas
	}
	objects, err := manifest.Read(ctx, sources, options)
	if err != nil {
		return manifest.Objects{}, err
	}
	return objects, nil
}

// gather returns the contents of the files, of the manifests in the folders, and of in.
func gather(names []string, in io.Reader) ([]manifest.Source, error) {
	var sources []manifest.Source
	for _, name := range names {
		if name == stdin {
			sources = append(sources, manifest.Source{Name: "standard input", Reader: in})
			continue
		}
		files, err := manifests(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			contents, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read a manifest: %w", err)
			}
			sources = append(sources, manifest.Source{Name: file, Reader: bytes.NewReader(contents)})
		}
	}
	return sources, nil
}

// manifests returns a file itself, and of a folder the files that are named as manifests,
// by name, without those of folders in it.
func manifests(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var files []string
	for _, entry := range entries {
		if entry.Type()&fs.ModeDir == 0 && isManifest(entry.Name()) {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read manifests: %s: no .yaml, .yml or .json file is in it", name)
	}
	return files, nil
}

func isManifest(name string) bool {
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
