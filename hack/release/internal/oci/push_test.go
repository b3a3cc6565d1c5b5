// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/seamark-dev/seamark/hack/image"
	"github.com/seamark-dev/seamark/hack/release/internal/expect"
)

// app returns the index of an image for two architectures.
func app(t *testing.T) v1.ImageIndex {
	t.Helper()
	var images []image.Image
	for _, arch := range []string{"amd64", "arm64"} {
		images = append(images, image.Image{
			Name: "example.org/app:v1", Architecture: arch, Labels: map[string]string{"title": "app"},
			Files: fstest.MapFS{"app": {Mode: 0o755, Data: []byte("program for " + arch)}},
		})
	}
	index, err := Index(images)
	expect.NoError(t, err)
	return index
}

// write writes the layouts of an image and of a chart, and returns their digests.
func write(t *testing.T) (folder string, image, chart v1.Hash) {
	t.Helper()
	folder = t.TempDir()
	image, err := WriteIndex(filepath.Join(folder, "app"), "v1", app(t))
	expect.NoError(t, err)
	chart, err = Chart{Package: []byte("package"), Metadata: []byte("{}"), Tag: "1.0.0", Annotations: map[string]string{"a": "b"}}.
		Write(filepath.Join(folder, "achart"))
	expect.NoError(t, err)
	return folder, image, chart
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	folder, imageDigest, chartDigest := write(t)
	pushed, err := Push(t.Context(), folder, host+"/path")
	expect.NoError(t, err)
	want := []string{host + "/path/app:v1@" + imageDigest.String(), host + "/path/achart:1.0.0@" + chartDigest.String()}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Error(diff)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		reference, err := name.ParseReference(host + "/path/app:v1")
		expect.NoError(t, err)
		pulled, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		expect.NoError(t, err)
		if config, err := pulled.ConfigFile(); err != nil || config.Architecture != arch || config.Config.Labels["title"] != "app" {
			t.Errorf("config %+v, error %v", config, err)
		}
	}
	reference, err := name.ParseReference(host + "/path/achart:1.0.0")
	expect.NoError(t, err)
	chart, err := remote.Image(reference)
	expect.NoError(t, err)
	manifest, err := chart.Manifest()
	expect.NoError(t, err)
	if manifest.Config.MediaType != chartConfigType || manifest.Layers[0].MediaType != chartPackageType || manifest.Annotations["a"] != "b" {
		t.Errorf("manifest %+v", manifest)
	}
	layers, err := chart.Layers()
	expect.NoError(t, err)
	stream, err := layers[0].Compressed()
	expect.NoError(t, err)
	defer func() { _ = stream.Close() }()
	if content, err := io.ReadAll(stream); err != nil || string(content) != "package" {
		t.Errorf("content %q, error %v", content, err)
	}
}

func TestPushErrors(t *testing.T) {
	folder, _, _ := write(t)
	broken := t.TempDir()
	expect.NoError(t, os.Mkdir(filepath.Join(broken, "app"), 0o755))
	for name, test := range map[string]struct{ layouts, registry, want string }{
		"no folder":        {filepath.Join(folder, "none"), "a/b", "list layouts"},
		"empty folder":     {t.TempDir(), "a/b", "is empty: run `make release`"},
		"not a layout":     {broken, "a/b", "read layout " + filepath.Join(broken, "app")},
		"invalid registry": {folder, "A B", `registry: "A B/achart" is invalid`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Push(t.Context(), test.layouts, test.registry); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

func TestArchive(t *testing.T) {
	folder, digest, _ := write(t)
	files, err := Archive(filepath.Join(folder, "app"), "example.org/app", "v1")
	expect.NoError(t, err)
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(files["index.json"].Data))
	expect.NoError(t, err)
	var names []string
	for _, entry := range manifest.Manifests {
		expect.Equal(t, "digest", digest, entry.Digest)
		names = append(names, entry.Annotations["io.containerd.image.name"])
	}
	if diff := cmp.Diff([]string{"example.org/app:v1", "example.org/app@" + digest.String()}, names); diff != "" {
		t.Error(diff)
	}
	// The index, and a manifest, a config and a layer for each of two platforms.
	delete(files, "index.json")
	delete(files, "oci-layout")
	if len(files) != 7 || files["blobs/sha256/"+digest.Hex] == nil {
		t.Errorf("files %v", slices.Sorted(maps.Keys(files)))
	}
}
