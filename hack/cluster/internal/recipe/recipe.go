// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recipe builds images from Debian packages, with apt-get and dpkg-deb, and without Docker or a registry.
//
// A description names the packages and the versions that are tested. Mirrors of Debian drop old versions, so an image has
// the versions that the mirror offers, and other ones than the tested ones are a warning. An image is built once: as long
// as its description stays the same, its archive does, too.
package recipe

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// format is part of the digest of a description: change it if the same description gives another image.
const format = "1"

// fileName is the name of the description in its folder.
const fileName = "image.yaml"

// Description describes an image.
type Description struct {
	// Image is the name of the image without a tag.
	Image string `json:"image"`
	// Tags are the tags of the image. Images with different tags have the same files and different IDs.
	Tags []string `json:"tags"`
	// Packages are the Debian packages and their tested versions. What they depend on is added. An empty version is not
	// compared.
	Packages map[string]string `json:"packages"`
	// Without are packages that others depend on and that the programs of the image do not use.
	Without []string `json:"without,omitempty"`
	// User is the numeric user of processes and, after a colon, the group.
	User string `json:"user"`
	// Entrypoint is the command.
	Entrypoint []string `json:"entrypoint"`
	// Env are `NAME=value` pairs.
	Env []string `json:"env,omitempty"`
	// StopSignal is the signal that ends the container. Empty means SIGTERM.
	StopSignal string `json:"stopSignal,omitempty"`
	// Files are files in the folder of the description by their absolute paths in the image.
	Files map[string]string `json:"files,omitempty"`

	// folder contains the description.
	folder string
	// digest identifies the description and its files.
	digest string
}

// Read reads the description in a folder.
func Read(folder string) (*Description, error) {
	path := filepath.Join(folder, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read description of an image: %w", err)
	}
	d := &Description{folder: folder}
	if err := yaml.UnmarshalStrict(content, d); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err := d.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%x\n", format, sha256.Sum256(content))
	for _, inside := range slices.Sorted(maps.Keys(d.Files)) {
		file := filepath.Join(folder, d.Files[inside])
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read file of an image: %w", err)
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, fmt.Errorf("read file of an image: %w", err)
		}
		fmt.Fprintf(sum, "%s %t %x\n", inside, info.Mode()&0o111 != 0, sha256.Sum256(content))
	}
	d.digest = fmt.Sprintf("%x", sum.Sum(nil))
	return d, nil
}

func (d *Description) validate() error {
	var errs []error
	for field, missing := range map[string]bool{
		"image": d.Image == "", "tags": len(d.Tags) == 0, "packages": len(d.Packages) == 0, "entrypoint": len(d.Entrypoint) == 0,
		"user": d.User == "",
	} {
		if missing {
			errs = append(errs, fmt.Errorf("%s: required", field))
		}
	}
	for _, source := range d.Files {
		if !fs.ValidPath(source) {
			errs = append(errs, fmt.Errorf("files: %q is invalid: must be a path in the folder of the description", source))
		}
	}
	return errors.Join(errs...)
}
