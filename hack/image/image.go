// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds container images from files, without a registry or a daemon.
//
// An image has one layer. Names are sorted, times are fixed, and owners are root, so that the same files give
// the same digest on every machine.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is an entry of the image's file system.
type File struct {
	// Mode is the permissions and the type: regular, fs.ModeDir or fs.ModeSymlink.
	Mode fs.FileMode
	// Data is the content of a regular file.
	Data []byte
	// Target is the target of a symbolic link.
	Target string
}

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
	// Labels are the labels of the image.
	Labels map[string]string
	// Architecture is the architecture in Go's names, for example arm64. Empty means that of this machine.
	Architecture string
	// Created is the time of the image and of its files. Zero means the epoch for files, and none for the image.
	Created time.Time
	// Files are the files by absolute path. Missing parent folders are created, readable for everyone.
	Files map[string]File
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
	content, err := i.layer()
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
	config.Config = v1.Config{User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Env: i.Env, Labels: i.Labels}
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
	// A concurrent reader gets either the old archive or the new one.
	if err := tarball.WriteToFile(path+".new", tag, built); err != nil {
		return v1.Hash{}, fmt.Errorf("write image %s: %w", i.Name, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return v1.Hash{}, fmt.Errorf("write image %s: %w", i.Name, err)
	}
	digest, err := built.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("digest image %s: %w", i.Name, err)
	}
	return digest, nil
}

// layer returns the file system as a tar stream.
func (i Image) layer() ([]byte, error) {
	files, err := withParents(i.Files)
	if err != nil {
		return nil, err
	}
	var paths []string
	for file := range files {
		paths = append(paths, file)
	}
	slices.Sort(paths)
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, file := range paths {
		if err := writeEntry(writer, strings.TrimPrefix(file, "/"), files[file], i.fileTime()); err != nil {
			return nil, fmt.Errorf("add %s: %w", file, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// fileTime returns the time of the files.
func (i Image) fileTime() time.Time {
	if i.Created.IsZero() {
		return time.Unix(0, 0)
	}
	return i.Created
}

// withParents adds missing parent folders of files.
func withParents(files map[string]File) (map[string]File, error) {
	all := make(map[string]File, len(files))
	for file, entry := range files {
		if !path.IsAbs(file) || path.Clean(file) != file || file == "/" {
			return nil, fmt.Errorf("path %q is invalid: must be absolute, without dots, and not the root", file)
		}
		all[file] = entry
		for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
			if _, named := files[dir]; !named {
				all[dir] = File{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	return all, nil
}

func writeEntry(writer *tar.Writer, name string, file File, at time.Time) error {
	header := &tar.Header{
		Name: name, Mode: mode(file.Mode), ModTime: at, Format: tar.FormatPAX,
	}
	switch file.Mode.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case fs.ModeSymlink:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, file.Target, 0o777
	case 0:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(file.Data))
	default:
		return fmt.Errorf("mode %s is invalid: must be a file, a folder or a link", file.Mode)
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(file.Data)
	return err
}

// mode returns a file mode for tar, which uses the special bits of Unix.
func mode(from fs.FileMode) int64 {
	bits := int64(from.Perm())
	for special, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if from&special != 0 {
			bits |= bit
		}
	}
	return bits
}

// AddFile adds the file host to the image at the path inside. It follows links and keeps the executable bit.
func (i *Image) AddFile(host, inside string) error {
	data, err := os.ReadFile(host)
	if err != nil {
		return fmt.Errorf("add file to image %s: %w", i.Name, err)
	}
	info, err := os.Stat(host)
	if err != nil {
		return fmt.Errorf("add file to image %s: %w", i.Name, err)
	}
	// The other permissions depend on the umask at the creation of the file.
	perm := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		perm = 0o755
	}
	return i.add(inside, File{Mode: perm, Data: data})
}

// AddTree adds the content of the folder root to the root of the image, with its permissions.
func (i *Image) AddTree(root string) error {
	err := filepath.WalkDir(root, func(host string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, host)
		if err != nil || inside == "." {
			return err
		}
		file, err := readFile(host, entry)
		if err != nil {
			return err
		}
		return i.add("/"+filepath.ToSlash(inside), file)
	})
	if err != nil {
		return fmt.Errorf("add %s to image %s: %w", root, i.Name, err)
	}
	return nil
}

func readFile(host string, entry fs.DirEntry) (File, error) {
	info, err := entry.Info()
	if err != nil {
		return File{}, err
	}
	file := File{Mode: info.Mode()}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		file.Target, err = os.Readlink(host)
	case 0:
		file.Data, err = os.ReadFile(host)
	}
	return file, err
}

func (i *Image) add(inside string, file File) error {
	if _, taken := i.Files[inside]; taken {
		return errors.New(inside + " already exists")
	}
	if i.Files == nil {
		i.Files = map[string]File{}
	}
	i.Files[inside] = file
	return nil
}
