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
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// write writes the layouts of an image and of a chart, and returns their digests.
func write(t *testing.T) (folder string, image, chart v1.Hash) {
	t.Helper()
	folder = t.TempDir()
	image, err := WriteIndex(filepath.Join(folder, "app"), "v1", app(t))
	if err != nil {
		t.Fatal(err)
	}
	chart, err = Chart{Package: []byte("package"), Metadata: []byte("{}"), Tag: "1.0.0", Annotations: map[string]string{"a": "b"}}.
		Write(filepath.Join(folder, "achart"))
	if err != nil {
		t.Fatal(err)
	}
	return folder, image, chart
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	folder, imageDigest, chartDigest := write(t)
	pushed, err := Push(t.Context(), folder, host+"/path")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{host + "/path/app:v1@" + imageDigest.String(), host + "/path/achart:1.0.0@" + chartDigest.String()}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Error(diff)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		reference, err := name.ParseReference(host + "/path/app:v1")
		if err != nil {
			t.Fatal(err)
		}
		pulled, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		if config, err := pulled.ConfigFile(); err != nil || config.Architecture != arch || config.Config.Labels["title"] != "app" {
			t.Errorf("config %+v, error %v", config, err)
		}
	}
	reference, err := name.ParseReference(host + "/path/achart:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	chart, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := chart.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfigType || manifest.Layers[0].MediaType != chartPackageType || manifest.Annotations["a"] != "b" {
		t.Errorf("manifest %+v", manifest)
	}
	layers, err := chart.Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if content, err := io.ReadAll(stream); err != nil || string(content) != "package" {
		t.Errorf("content %q, error %v", content, err)
	}
}

func TestPushErrors(t *testing.T) {
	folder, _, _ := write(t)
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, "app"), 0o755); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := v1.ParseIndexManifest(bytes.NewReader(files["index.json"].Data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range manifest.Manifests {
		if entry.Digest != digest {
			t.Errorf("digest %s, want %s", entry.Digest, digest)
		}
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
