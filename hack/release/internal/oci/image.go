// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci writes images and charts as OCI image layouts, and pushes layouts to registries.
package oci

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/seamark-dev/seamark/hack/image"
)

// The annotations of a layout that name its content: the tag, and the name of the image for containerd.
const (
	tagAnnotation  = "org.opencontainers.image.ref.name"
	nameAnnotation = "io.containerd.image.name"
)

// Index returns the index of an image with several platforms. Its annotations are the labels of the images.
func Index(images []image.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		built, err := i.BuildOCI()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: i.Architecture}},
		})
	}
	annotated, isIndex := mutate.Annotations(index, images[0].Labels).(v1.ImageIndex)
	if !isIndex {
		return nil, fmt.Errorf("image %s: the annotated index is not an index", images[0].Name)
	}
	return annotated, nil
}

// WriteIndex writes the layout of an index to a folder, which must not exist. It returns the digest of the index.
func WriteIndex(folder, tag string, index v1.ImageIndex) (v1.Hash, error) {
	written, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = written.AppendIndex(index, layout.WithAnnotations(map[string]string{tagAnnotation: tag}))
	}
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write layout %s: %w", folder, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write layout %s: %w", folder, err)
	}
	return digest, nil
}

// Archive returns the files of an archive of the layout in a folder, which runtimes import without a registry. The
// layout in the archive names its content twice, by tag and by digest: after an import, containerd finds the image of
// a pod whose reference has the digest only.
func Archive(folder, repository, tag string) (fstest.MapFS, error) {
	_, only, err := open(folder)
	if err != nil {
		return nil, err
	}
	named := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, name := range []string{repository + ":" + tag, repository + "@" + only.Digest.String()} {
		entry := only
		entry.Annotations = maps.Clone(only.Annotations)
		entry.Annotations[nameAnnotation] = name
		named.Manifests = append(named.Manifests, entry)
	}
	index, err := json.Marshal(named)
	if err != nil {
		return nil, fmt.Errorf("encode the index of %s: %w", folder, err)
	}
	files, err := image.ReadFolder(folder)
	if err != nil {
		return nil, err
	}
	files["index.json"].Data = index
	return files, nil
}

// open opens the layout in a folder, and returns the descriptor of its only content.
func open(folder string) (v1.ImageIndex, v1.Descriptor, error) {
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("read layout %s: %w", folder, err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("read layout %s: %w", folder, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, v1.Descriptor{}, fmt.Errorf("read layout %s: it has %d manifests, must be 1", folder, len(manifest.Manifests))
	}
	return root, manifest.Manifests[0], nil
}
