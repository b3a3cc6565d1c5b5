// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
