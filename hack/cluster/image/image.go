// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image builds container images from files, without a registry and without a builder daemon.
//
// An image is one layer on nothing. Everything in it follows from the files: names are sorted, times are
// the epoch, owners are root, so that the same input gives the same digest everywhere.
package image

import (
	"archive/tar"
	"bytes"
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
)

// File is one entry of the image's file system.
type File struct {
	// Mode holds the permissions, and the type: regular, fs.ModeDir or fs.ModeSymlink.
	Mode fs.FileMode
	// Data is the content of a regular file.
	Data []byte
	// Target is where a symbolic link points.
	Target string
}

// Image is what an image is made of.
type Image struct {
	// Name is its reference with a tag, such as `example.org/app:1`.
	Name string
	// User is the numeric user and, after a colon, group that its processes run as; empty for root.
	User string
	// Entrypoint is the command to run; Cmd are its default arguments.
	Entrypoint, Cmd []string
	// Env holds `NAME=value` pairs.
	Env []string
	// Files are its files by absolute path. Folders that are not named are made, open to all.
	Files map[string]File
}

// Build makes the image for this machine's architecture.
func (i Image) Build() (v1.Image, error) {
	content, err := i.layer()
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make the layer of %s: %w", i.Name, err)
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("make image %s: %w", i.Name, err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("make image %s: %w", i.Name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Env: i.Env}
	built, err = mutate.ConfigFile(built, config)
	if err != nil {
		return nil, fmt.Errorf("make image %s: %w", i.Name, err)
	}
	return built, nil
}

// Write builds the image and writes it to path as an archive that `docker load` and
// `ctr images import` read. It returns the image's digest.
func (i Image) Write(path string) (v1.Hash, error) {
	tag, err := name.NewTag(i.Name)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("read the image name: %w", err)
	}
	built, err := i.Build()
	if err != nil {
		return v1.Hash{}, err
	}
	// A reader of the file sees the old archive or the new one.
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

// layer is the file system as a tar stream.
func (i Image) layer() ([]byte, error) {
	files, err := withParents(i.Files)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	var paths []string
	for file := range files {
		paths = append(paths, file)
	}
	slices.Sort(paths)
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, file := range paths {
		if err := writeEntry(writer, strings.TrimPrefix(file, "/"), files[file]); err != nil {
			return nil, fmt.Errorf("image %s: add %s: %w", i.Name, file, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	return out.Bytes(), nil
}

// withParents adds the folders that files lie in and that are not named.
func withParents(files map[string]File) (map[string]File, error) {
	all := make(map[string]File, len(files))
	for file, entry := range files {
		if !path.IsAbs(file) || path.Clean(file) != file || file == "/" {
			return nil, fmt.Errorf("path %q: it is absolute, plain and not the root", file)
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

func writeEntry(writer *tar.Writer, name string, file File) error {
	header := &tar.Header{
		Name: name, Mode: mode(file.Mode), ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	switch file.Mode.Type() {
	case fs.ModeDir:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case fs.ModeSymlink:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, file.Target, 0o777
	case 0:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(file.Data))
	default:
		return fmt.Errorf("%s: images hold files, folders and links", file.Mode)
	}
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err := writer.Write(file.Data)
	return err
}

// mode is a file mode as tar writes it: the three special bits are Unix's, not Go's.
func mode(from fs.FileMode) int64 {
	bits := int64(from.Perm())
	for special, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if from&special != 0 {
			bits |= bit
		}
	}
	return bits
}

// AddFile reads the file host into the image at the path inside. Links are followed; programs stay so.
func (i *Image) AddFile(host, inside string) error {
	data, err := os.ReadFile(host)
	if err != nil {
		return fmt.Errorf("add a file to image %s: %w", i.Name, err)
	}
	info, err := os.Stat(host)
	if err != nil {
		return fmt.Errorf("add a file to image %s: %w", i.Name, err)
	}
	// Only this bit is kept: the rest depends on the umask of whoever made the file.
	perm := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		perm = 0o755
	}
	return i.add(inside, File{Mode: perm, Data: data})
}

// AddTree adds all that is below the folder root, at the root of the image, with its permissions.
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
		return errors.New(inside + " is there already")
	}
	if i.Files == nil {
		i.Files = map[string]File{}
	}
	i.Files[inside] = file
	return nil
}
