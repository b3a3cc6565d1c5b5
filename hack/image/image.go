// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds container images and archives from files, without a registry or a daemon.
//
// An image has one layer. Names are sorted, times are fixed, and owners are root unless an archive says otherwise, so
// that the same files give the same digest on every machine.
package image

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"strings"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image describes an image.
type Image struct {
	// Name is the reference with a tag, for example `example.org/app:1`.
	Name string
	// User is the numeric user of processes and, after a colon, the group. Empty means root.
	User string
	// Entrypoint is the command, and Cmd its default arguments.
	Entrypoint, Cmd []string
	// Env are `NAME=value` pairs.
	Env []string
	// StopSignal is the signal that ends the container. Empty means SIGTERM.
	StopSignal string
	// Labels are the labels of the image.
	Labels map[string]string
	// Architecture is the architecture in Go's names, for example arm64. Empty means that of this machine.
	Architecture string
	// Created is the time of the image and of its files. Zero means the epoch for files, and none for the image.
	Created time.Time
	// Files are the files by their paths from the root, without a slash at the beginning: see Tar.
	Files fstest.MapFS
}

// Build builds the image with the media types of Docker, which every version of containerd and Docker reads.
func (i Image) Build() (v1.Image, error) {
	built, err := i.build(types.DockerLayer)
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", i.Name, err)
	}
	return built, nil
}

// BuildOCI builds the image with the media types of the OCI image specification.
func (i Image) BuildOCI() (v1.Image, error) {
	built, err := i.build(types.OCILayer)
	if err != nil {
		return nil, fmt.Errorf("build image %s: %w", i.Name, err)
	}
	return mutate.ConfigMediaType(mutate.MediaType(built, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

func (i Image) build(layerType types.MediaType) (v1.Image, error) {
	content, err := Tar(i.Files, i.fileTime())
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(layerType), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", cmp.Or(i.Architecture, runtime.GOARCH)
	config.Created = v1.Time{Time: i.Created}
	config.Config = v1.Config{User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Env: i.Env, StopSignal: i.StopSignal, Labels: i.Labels}
	return mutate.ConfigFile(built, config)
}

// Write builds the image and writes it to path as an archive that `docker load` and
// `ctr images import` read. It returns the digest of the image.
func (i Image) Write(path string) (v1.Hash, error) {
	tag, err := name.NewTag(i.Name)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("parse image name: %w", err)
	}
	built, err := i.Build()
	if err != nil {
		return v1.Hash{}, err
	}
	if err := write(path, map[name.Tag]v1.Image{tag: built}); err != nil {
		return v1.Hash{}, fmt.Errorf("write image %s: %w", i.Name, err)
	}
	digest, err := built.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("digest image %s: %w", i.Name, err)
	}
	return digest, nil
}

// VersionLabel is the label that WriteTags sets.
const VersionLabel = "org.opencontainers.image.version"

// WriteTags writes the image, whose name has no tag, to one archive with several tags. The files are the same, and a
// label has the tag, so that the images have different IDs as those of two builds have.
func (i Image) WriteTags(path string, tags []string) error {
	built, err := i.Build()
	if err != nil {
		return err
	}
	all := map[name.Tag]v1.Image{}
	for _, version := range tags {
		tag, err := name.NewTag(i.Name + ":" + version)
		if err != nil {
			return fmt.Errorf("parse image name: %w", err)
		}
		config, err := built.ConfigFile()
		if err != nil {
			return fmt.Errorf("read the configuration of image %s: %w", i.Name, err)
		}
		config = config.DeepCopy()
		config.Config.Labels = map[string]string{VersionLabel: version}
		maps.Copy(config.Config.Labels, i.Labels)
		if all[tag], err = mutate.ConfigFile(built, config); err != nil {
			return fmt.Errorf("tag image %s: %w", tag, err)
		}
	}
	if err := write(path, all); err != nil {
		return fmt.Errorf("write image %s: %w", i.Name, err)
	}
	return nil
}

// write writes an archive. A concurrent reader gets either the old one or the new one.
func write(path string, images map[name.Tag]v1.Image) error {
	if err := tarball.MultiWriteToFile(path+".new", images); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (i Image) fileTime() time.Time {
	if i.Created.IsZero() {
		return time.Unix(0, 0)
	}
	return i.Created
}

// Tar returns a tar archive of files, whose times are the given one, and whose owner is root unless their field Sys is a
// tar.Header. Missing parent folders are readable for everyone.
func Tar(files fstest.MapFS, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	if err := errors.Join(writer.AddFS(stamp(files, at)), writer.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// TarGzip returns the archive of Tar, compressed with gzip.
func TarGzip(files fstest.MapFS, at time.Time) ([]byte, error) {
	content, err := Tar(files, at)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	_, err = compressed.Write(content)
	err = errors.Join(err, compressed.Close())
	return out.Bytes(), err
}

// Zip returns a zip archive, as Tar does.
func Zip(files fstest.MapFS, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	writer := zip.NewWriter(&out)
	err := errors.Join(writer.AddFS(stamp(files, at)), writer.Close())
	return out.Bytes(), err
}

// stamp returns files with their parent folders, and with a time.
func stamp(files fstest.MapFS, at time.Time) fstest.MapFS {
	stamped := fstest.MapFS{}
	for name, file := range files {
		stamped[name] = &fstest.MapFile{Mode: file.Mode, Data: file.Data, ModTime: at, Sys: file.Sys}
		for folder := path.Dir(name); folder != "." && files[folder] == nil; folder = path.Dir(folder) {
			stamped[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: at}
		}
	}
	return stamped
}

// ReadFolder returns the regular files of a folder, readable for everyone.
func ReadFolder(folder string) (fstest.MapFS, error) {
	files := fstest.MapFS{}
	source := os.DirFS(folder)
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		data, err := fs.ReadFile(source, name)
		files[name] = &fstest.MapFile{Mode: 0o644, Data: data}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", folder, err)
	}
	return files, nil
}

// AddFile adds the file host to the image at the absolute path inside. It follows links and keeps the executable bit.
func (i *Image) AddFile(host, inside string) error {
	file, absolute := strings.CutPrefix(inside, "/")
	if !absolute || !fs.ValidPath(file) || file == "." {
		return fmt.Errorf("path %q in image %s is invalid: must be absolute, without dots, and not the root", inside, i.Name)
	}
	if i.Files[file] != nil {
		return fmt.Errorf("path %s in image %s already exists", inside, i.Name)
	}
	data, err := os.ReadFile(host)
	if err != nil {
		return fmt.Errorf("add file to image %s: %w", i.Name, err)
	}
	info, err := os.Stat(host)
	if err != nil {
		return fmt.Errorf("add file to image %s: %w", i.Name, err)
	}
	// The other permissions depend on the umask at the creation of the file.
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if i.Files == nil {
		i.Files = fstest.MapFS{}
	}
	i.Files[file] = &fstest.MapFile{Mode: mode, Data: data}
	return nil
}
