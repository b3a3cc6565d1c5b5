// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push pushes the layouts in a folder, one per image or chart in a folder with its name, to a registry and path, with
// the tags that the layouts name. The credentials are those of Docker's configuration. It returns the references of
// everything that it has pushed, with their digests. The chart is pushed last, so that its images exist.
func Push(ctx context.Context, layouts, registry string) (pushed []string, err error) {
	folders, err := os.ReadDir(layouts)
	if err != nil {
		return nil, fmt.Errorf("list layouts: %w", err)
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("layouts: %s is empty: run `make release`", layouts)
	}
	var artifacts []artifact
	for _, folder := range folders {
		found, err := readLayout(filepath.Join(layouts, folder.Name()), registry+"/"+folder.Name())
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, found)
	}
	slices.SortStableFunc(artifacts, func(a, b artifact) int { return cmp.Compare(a.order, b.order) })
	for _, a := range artifacts {
		if err := remote.Push(a.tag, a.content, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return pushed, fmt.Errorf("push %s: %w", a.tag, err)
		}
		pushed = append(pushed, a.tag.String()+"@"+a.digest.String())
	}
	return pushed, nil
}

// artifact is the content of a layout: an index of images, whose order is 0, or the manifest of a chart.
type artifact struct {
	tag     name.Tag
	digest  v1.Hash
	content remote.Taggable
	order   int
}

func readLayout(folder, repository string) (artifact, error) {
	root, only, err := open(folder)
	if err != nil {
		return artifact{}, err
	}
	found := artifact{digest: only.Digest}
	if found.tag, err = name.NewTag(repository + ":" + only.Annotations[tagAnnotation]); err != nil {
		return artifact{}, fmt.Errorf("registry: %q is invalid: %w", repository, err)
	}
	if only.MediaType.IsIndex() {
		found.content, err = root.ImageIndex(only.Digest)
	} else {
		found.order = 1
		found.content, err = root.Image(only.Digest)
	}
	if err != nil {
		return artifact{}, fmt.Errorf("read layout %s: %w", folder, err)
	}
	return found, nil
}
