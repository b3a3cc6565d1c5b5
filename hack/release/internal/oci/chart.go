// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
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
	artifact, err := c.artifact()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write the chart's layout: %w", err)
	}
	written, err := layout.Write(folder, empty.Index)
	if err == nil {
		err = written.AppendImage(artifact, layout.WithAnnotations(map[string]string{tagAnnotation: c.Tag}))
	}
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write layout %s: %w", folder, err)
	}
	return artifact.Digest()
}

func (c Chart) artifact() (v1.Image, error) {
	config, size, err := v1.SHA256(bytes.NewReader(c.Metadata))
	if err != nil {
		return nil, err
	}
	layer := static.NewLayer(c.Package, chartPackageType)
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: c.Annotations,
		Config: v1.Descriptor{MediaType: chartConfigType, Size: size, Digest: config},
		Layers: []v1.Descriptor{*described},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&artifact{config: c.Metadata, manifest: manifest, layer: layer})
}

// artifact is an image whose config is not that of a container.
type artifact struct {
	config, manifest []byte
	layer            v1.Layer
}

func (a *artifact) RawConfigFile() ([]byte, error)      { return a.config, nil }
func (a *artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	digest, err := a.layer.Digest()
	if err != nil {
		return nil, err
	}
	if h != digest {
		return nil, fmt.Errorf("there is no layer %s", h)
	}
	return a.layer, nil
}
