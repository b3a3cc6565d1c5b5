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
	"path/filepath"

	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/seamark-dev/seamark/internal/local/manifest"
)

// stdin is the file name that means the standard input.
const stdin = "-"

// read reads all manifests.
func (o *LocalOptions) read(ctx context.Context) (manifest.Objects, error) {
	files, unreadable := loadFiles(ctx, o.Filenames, o.In)
	if o.Kustomize != "" {
		content, err := o.build()
		files = append(files, manifest.Input{Name: o.Kustomize, Reader: bytes.NewReader(content)})
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
	objects, err := manifest.Read(ctx, files, options)
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
		if name == stdin {
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
		paths, err := expand(name)
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

// expand returns the path of a file, or the paths of the manifests in a folder, sorted and
// without those in subfolders.
func expand(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		// With a trailing separator, a symbolic link to a folder is followed.
		name = filepath.Clean(name) + string(filepath.Separator)
	}
	visitors, err := resource.ExpandPathsToFileVisitors(nil, name, false, resource.FileExtensions, nil)
	if err != nil {
		return nil, err
	}
	if len(visitors) == 0 {
		return nil, fmt.Errorf("%s: no .yaml, .yml or .json file in the folder", name)
	}
	var paths []string
	for _, visitor := range visitors {
		if file, ok := visitor.(*resource.FileVisitor); ok {
			paths = append(paths, file.Path)
		}
	}
	return paths, nil
}
