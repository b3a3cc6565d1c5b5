// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry has the fields of a file in a layer that tests compare.
type entry struct {
	Type   byte
	Mode   int64
	Data   string
	Target string
}

// entries returns the files in the only layer of an image, in order.
func entries(t *testing.T, image v1.Image) (order []string, all map[string]entry) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, error %v", len(layers), err)
	}
	stream, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	all = map[string]entry{}
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return order, all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d, time %s", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		order = append(order, header.Name)
		all[header.Name] = entry{header.Typeflag, header.Mode, string(data), header.Linkname}
	}
}

// exampleFiles are files of every kind.
func exampleFiles() fstest.MapFS {
	return fstest.MapFS{
		"etc/deep/file": {Mode: 0o640, Data: []byte("text")},
		"etc/link":      {Mode: fs.ModeSymlink | 0o777, Data: []byte("deep/file")},
	}
}

func TestWrite(t *testing.T) {
	image := Image{Name: "example.org/app:1", User: "1000", Entrypoint: []string{"/app", "-v"}, Env: []string{"A=b"}, Files: exampleFiles()}
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := image.AddFile(program, "/app"); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "app.tar")
	digest, err := image.Write(archive)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example.org/app:1")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	order, all := entries(t, read)
	wantOrder := []string{"app", "etc/", "etc/deep/", "etc/deep/file", "etc/link"}
	if diff := cmp.Diff(wantOrder, order); diff != "" {
		t.Error(diff)
	}
	want := map[string]entry{
		"app":           {tar.TypeReg, 0o755, "program", ""},
		"etc/":          {tar.TypeDir, 0o755, "", ""},
		"etc/deep/":     {tar.TypeDir, 0o755, "", ""},
		"etc/deep/file": {tar.TypeReg, 0o640, "text", ""},
		"etc/link":      {tar.TypeSymlink, 0o777, "", "deep/file"},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
	config, err := read.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wantConfig := v1.Config{User: "1000", Entrypoint: []string{"/app", "-v"}, Env: []string{"A=b"}}
	if diff := cmp.Diff(wantConfig, config.Config); diff != "" {
		t.Error(diff)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		t.Errorf("platform %s/%s", config.OS, config.Architecture)
	}
	if again, err := image.Build(); err != nil {
		t.Error(err)
	} else if got, err := again.Digest(); err != nil || got != digest {
		t.Errorf("digest %s, then %s, error %v", digest, got, err)
	}
}

func TestBuildOCI(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	image := Image{
		Name: "example.org/app:1", Architecture: "s390x", Labels: map[string]string{"a": "b"}, Created: created,
		Files: fstest.MapFS{"app": {Mode: 0o755, Data: []byte("program")}},
	}
	built, err := image.BuildOCI()
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "s390x" || !config.Created.Equal(created) || config.Config.Labels["a"] != "b" {
		t.Errorf("config %+v", config)
	}
	manifest, err := built.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got := []types.MediaType{manifest.MediaType, manifest.Config.MediaType, manifest.Layers[0].MediaType}
	want := []types.MediaType{types.OCIManifestSchema1, types.OCIConfigJSON, types.OCILayer}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	layers, err := built.Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if header, err := tar.NewReader(stream).Next(); err != nil || !header.ModTime.Equal(created) {
		t.Errorf("header %+v, error %v", header, err)
	}
}

func TestInvalidImages(t *testing.T) {
	for name, image := range map[string]Image{
		"invalid name": {Name: "UPPER/case:1", Files: exampleFiles()},
		"device":       {Name: "a:1", Files: fstest.MapFS{"dev": {Mode: fs.ModeDevice | 0o600}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.tar")
			if _, err := image.Write(path); err == nil {
				t.Error("no error")
			}
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an archive was written: %v", err)
			}
		})
	}
}

func TestAddFileRefusesPaths(t *testing.T) {
	source := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(source, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	image := Image{Name: "a:1"}
	if err := image.AddFile(source, "/file"); err != nil {
		t.Fatal(err)
	}
	for _, inside := range []string{"/file", "relative", "/a/../b", "/"} {
		if err := image.AddFile(source, inside); err == nil {
			t.Errorf("%s: no error", inside)
		}
	}
	if err := image.AddFile(source+".missing", "/other"); err == nil {
		t.Error("no error for a missing file")
	}
}
