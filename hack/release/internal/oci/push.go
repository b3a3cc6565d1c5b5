// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// PushOptions are the options of Push.
type PushOptions struct {
	// Layouts is a folder with one layout per image or chart, in a folder with its name.
	Layouts string
	// Registry is the registry and the path of all images.
	Registry string
	// PlainHTTP uses HTTP instead of HTTPS.
	PlainHTTP bool
}

// Push pushes layouts to a registry, with the tags that the layouts name. The credentials are those of Docker's
// configuration. It returns the references of everything that it has pushed, with their digests. The chart is pushed
// last, so that its images exist.
func Push(ctx context.Context, o PushOptions) ([]string, error) {
	folders, err := os.ReadDir(o.Layouts)
	if err != nil {
		return nil, fmt.Errorf("list layouts: %w", err)
	}
	var artifacts []artifactOf
	for _, folder := range folders {
		found, err := readLayout(filepath.Join(o.Layouts, folder.Name()), folder.Name(), o)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, found)
	}
	if len(artifacts) == 0 {
		return nil, fmt.Errorf("layouts: %s is empty: run `make release`", o.Layouts)
	}
	var pushed []string
	for _, charts := range []bool{false, true} {
		for _, a := range artifacts {
			if (a.index == nil) != charts {
				continue
			}
			if err := a.push(ctx); err != nil {
				return pushed, fmt.Errorf("push %s: %w", a.tag, err)
			}
			pushed = append(pushed, a.tag.String()+"@"+a.digest.String())
		}
	}
	return pushed, nil
}

// artifactOf is the content of a layout: an index of images, or the manifest of a chart.
type artifactOf struct {
	tag    name.Tag
	digest v1.Hash
	index  v1.ImageIndex
	image  v1.Image
}

func (a artifactOf) push(ctx context.Context) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if a.index != nil {
		return remote.WriteIndex(a.tag, a.index, options...)
	}
	return remote.Write(a.tag, a.image, options...)
}

func readLayout(folder, repository string, o PushOptions) (artifactOf, error) {
	root, only, err := open(folder)
	if err != nil {
		return artifactOf{}, err
	}
	tag := only.Annotations[tagAnnotation]
	if tag == "" {
		return artifactOf{}, fmt.Errorf("read layout %s: its manifest has no annotation %s", folder, tagAnnotation)
	}
	var nameOptions []name.Option
	if o.PlainHTTP {
		nameOptions = append(nameOptions, name.Insecure)
	}
	found := artifactOf{digest: only.Digest}
	if found.tag, err = name.NewTag(o.Registry+"/"+repository+":"+tag, nameOptions...); err != nil {
		return artifactOf{}, fmt.Errorf("registry: %q is invalid: %w", o.Registry, err)
	}
	if only.MediaType.IsIndex() {
		found.index, err = root.ImageIndex(only.Digest)
	} else {
		found.image, err = root.Image(only.Digest)
	}
	if err != nil {
		return artifactOf{}, fmt.Errorf("read layout %s: %w", folder, err)
	}
	return found, nil
}
