// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// headersOf returns the files in the only layer of an image, in order, with a reader of the contents.
func headersOf(t *testing.T, image v1.Image) iter.Seq2[string, *file] {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, error %v", len(layers), err)
	}
	return func(yield func(string, *file) bool) {
		stream, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = stream.Close() }()
		for reader := tar.NewReader(stream); ; {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(header.Name, &file{header, reader}) {
				return
			}
		}
	}
}

// file is a file of a layer.
type file struct {
	*tar.Header
	io.Reader
}

// entries returns the files in the only layer of an image, in order.
func entries(t *testing.T, image v1.Image) (order []string, all map[string]entry) {
	t.Helper()
	all = map[string]entry{}
	for name, file := range headersOf(t, image) {
		data, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		if file.Uid != 0 || file.Gid != 0 || file.ModTime.Unix() != 0 {
			t.Errorf("%s: owner %d:%d, time %s", name, file.Uid, file.Gid, file.ModTime)
		}
		order = append(order, name)
		all[name] = entry{file.Typeflag, file.Mode, string(data), file.Linkname}
	}
	return order, all
}

// exampleFiles are files of every kind.
func exampleFiles() fstest.MapFS {
	return fstest.MapFS{
		"etc/deep/file": {Mode: 0o640, Data: []byte("text")},
		"etc/link":      {Mode: fs.ModeSymlink | 0o777, Data: []byte("deep/file")},
	}
}

func TestWrite(t *testing.T) {
	image := Image{
		Name: "example.org/app:1", User: "1000", Entrypoint: []string{"/app", "-v"}, Env: []string{"A=b"}, StopSignal: "SIGUSR1", Files: exampleFiles(),
	}
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
	wantConfig := v1.Config{User: "1000", Entrypoint: []string{"/app", "-v"}, Env: []string{"A=b"}, StopSignal: "SIGUSR1"}
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

// archive returns a tar archive with the headers, whose regular files contain their name.
func archive(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range headers {
		var data []byte
		if header.Typeflag == tar.TypeReg {
			data = []byte(header.Name)
			header.Size = int64(len(data))
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// The files of an archive keep modes, owners and links, also in an image with several tags.
func TestAddTar(t *testing.T) {
	image := Image{Name: "example.org/app", Files: Base()}
	err := image.AddTar(archive(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeDir, Name: "./tmp/", Mode: 0o700},
		tar.Header{Typeflag: tar.TypeReg, Name: "./bin/su", Mode: 0o4755},
		tar.Header{Typeflag: tar.TypeLink, Name: "./bin/a", Linkname: "./bin/su"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "./bin/link", Linkname: "../x"},
		tar.Header{Typeflag: tar.TypeReg, Name: "../data", Mode: 0o640, Uid: 7, Gid: 8},
		tar.Header{Typeflag: tar.TypeReg, Name: "./doc", Mode: 0o644},
	), func(name string) string {
		if name == "doc" {
			return ""
		}
		return strings.Replace(name, "bin/", "usr/bin/", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.tar")
	if err := image.WriteTags(path, []string{"v1", "v2"}); err != nil {
		t.Fatal(err)
	}
	ids := map[v1.Hash]string{}
	for _, version := range []string{"v1", "v2"} {
		tag, err := name.NewTag(image.Name + ":" + version)
		if err != nil {
			t.Fatal(err)
		}
		built, err := tarball.ImageFromPath(path, &tag)
		if err != nil {
			t.Fatal(err)
		}
		id, err := built.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = version
		got := map[string]tar.Header{}
		for name, header := range headersOf(t, built) {
			got[name] = tar.Header{Typeflag: header.Typeflag, Mode: header.Mode, Uid: header.Uid, Gid: header.Gid, Linkname: header.Linkname, Size: header.Size}
		}
		for name, want := range map[string]tar.Header{
			"usr/bin/su":   {Typeflag: tar.TypeReg, Mode: 0o4755, Size: 8},
			"usr/bin/a":    {Typeflag: tar.TypeReg, Mode: 0o4755, Size: 8},
			"usr/bin/link": {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "../x"},
			"data":         {Typeflag: tar.TypeReg, Mode: 0o640, Uid: 7, Gid: 8, Size: 7},
			"doc":          {},
			"tmp/":         {Typeflag: tar.TypeDir, Mode: 0o1777},
		} {
			if diff := cmp.Diff(want, got[name]); diff != "" {
				t.Errorf("%s, file %s (-want +got):\n%s", version, name, diff)
			}
		}
	}
	if len(ids) != 2 {
		t.Errorf("image IDs %v, want one per tag", ids)
	}
}

func TestAddTarRefusesFiles(t *testing.T) {
	for name, header := range map[string]tar.Header{
		"device":                       {Typeflag: tar.TypeBlock, Name: "disk"},
		"hard link without its target": {Typeflag: tar.TypeLink, Name: "a", Linkname: "b"},
	} {
		image := Image{Name: "a"}
		if err := image.AddTar(archive(t, header), func(name string) string { return name }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
