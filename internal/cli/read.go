// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/internal/manifest"
	"github.com/seamark-dev/seamark/internal/manifest/files"
)

// read reads all manifests.
func (o *LocalOptions) read(ctx context.Context) (manifest.Objects, error) {
	inputs, unreadable := loadFiles(ctx, o.Filenames, o.In)
	if o.Kustomize != "" {
		content, err := o.build()
		inputs = append(inputs, manifest.Input{Name: o.Kustomize, Reader: bytes.NewReader(content)})
		unreadable = errors.Join(unreadable, err)
	}
	commands, err := parseCommands(o.Commands)
	if err != nil {
		return manifest.Objects{}, err
	}
	options := manifest.Options{Commands: commands}
	if o.Replicas >= 0 {
		options.Replicas = &o.Replicas
	}
	objects, err := manifest.Read(ctx, inputs, options)
	return objects, errors.Join(unreadable, err)
}

// build returns the manifests of the kustomization.
func (o *LocalOptions) build() ([]byte, error) {
	if o.AllowRemote {
		return kustomize(o.Kustomize, filesys.MakeFsOnDisk())
	}
	return kustomizeLocally(o.Kustomize)
}

// loadFiles returns the contents of the files, of the manifests in the folders, and of in, as
// far as they are readable. The error joins those of the others.
//
// Files are found as kubectl finds them. Their content is decoded by manifest.Read, not by
// the visitors: these accept duplicate keys and do not report the number of the document
// that an error is in.
func loadFiles(ctx context.Context, names []string, in io.Reader) ([]manifest.Input, error) {
	var inputs []manifest.Input
	var errs []error
	for _, name := range names {
		if name == files.Stdin {
			inputs = append(inputs, manifest.Input{Name: "standard input", Reader: in})
			continue
		}
		if isURL(name) {
			content, err := download(ctx, name)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			inputs = append(inputs, manifest.Input{Name: name, Reader: bytes.NewReader(content)})
			continue
		}
		paths, err := files.Expand(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("read manifests: %w", err))
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				errs = append(errs, fmt.Errorf("read manifest: %w", err))
				continue
			}
			inputs = append(inputs, manifest.Input{Name: path, Reader: bytes.NewReader(content)})
		}
	}
	return inputs, errors.Join(errs...)
}
