// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci writes images and charts as OCI image layouts, and pushes layouts to registries.
package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
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

// The media types of Helm.
const (
	chartConfigType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartPackageType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Chart is the chart of a release.
type Chart struct {
	// Package is the archive, and Metadata the content of Chart.yaml as JSON.
	Package, Metadata []byte
	// Tag is the tag in the registry, which Helm requires to be the version of the chart.
	Tag string
	// Annotations are the annotations of the manifest.
	Annotations map[string]string
}

// Write writes the layout of the chart to a folder, which must not exist, as an artifact that Helm reads. It returns
// the digest of its manifest.
func (c Chart) Write(folder string) (v1.Hash, error) {
	digest, err := c.write(folder)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write layout %s: %w", folder, err)
	}
	return digest, nil
}

func (c Chart) write(folder string) (v1.Hash, error) {
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	var described [3]v1.Descriptor
	add := func(n int, mediaType types.MediaType, content []byte) error {
		digest, size, err := v1.SHA256(bytes.NewReader(content))
		if err != nil {
			return err
		}
		described[n] = v1.Descriptor{MediaType: mediaType, Size: size, Digest: digest}
		return written.WriteBlob(digest, io.NopCloser(bytes.NewReader(content)))
	}
	if err := errors.Join(add(0, chartConfigType, c.Metadata), add(1, chartPackageType, c.Package)); err != nil {
		return v1.Hash{}, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: c.Annotations,
		Config: described[0], Layers: described[1:2],
	})
	if err != nil {
		return v1.Hash{}, err
	}
	if err := add(2, types.OCIManifestSchema1, manifest); err != nil {
		return v1.Hash{}, err
	}
	described[2].Annotations = map[string]string{tagAnnotation: c.Tag}
	return described[2].Digest, written.AppendDescriptor(described[2])
}

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
