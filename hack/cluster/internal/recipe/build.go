// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/seamark-dev/seamark/hack/cluster/internal/deb"
	"github.com/seamark-dev/seamark/hack/image"
)

// record is what is kept next to an archive.
type record struct {
	// Digest is that of the description.
	Digest string `json:"digest"`
	// Versions are those of all packages in the image.
	Versions map[string]string `json:"versions"`
}

// Build writes the archive of the image to path, unless it is there already and the description has not changed since. It
// prints to out.
func (d *Description) Build(ctx context.Context, path string, out io.Writer) error {
	stamp := path + ".json"
	if made, ok := d.made(path, stamp); ok {
		d.report(out, path, made)
		return nil
	}
	folder, err := os.MkdirTemp("", "seamark-recipe-")
	if err != nil {
		return fmt.Errorf("build image %s: %w", d.Image, err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	fmt.Fprintf(out, "building %s from Debian packages: %s\n", d.Image, strings.Join(slices.Sorted(maps.Keys(d.Packages)), " "))
	archives, err := deb.Download(ctx, folder, slices.Sorted(maps.Keys(d.Packages)), d.Without)
	if err != nil {
		return fmt.Errorf("build image %s: %w", d.Image, err)
	}
	made := record{Digest: d.digest, Versions: map[string]string{}}
	for _, archive := range archives {
		made.Versions[archive.Name] = archive.Version
	}
	built, err := d.image(ctx, archives)
	if err != nil {
		return fmt.Errorf("build image %s: %w", d.Image, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("build image %s: %w", d.Image, err)
	}
	if err := built.WriteTags(path, d.Tags); err != nil {
		return err
	}
	content, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return fmt.Errorf("record image %s: %w", d.Image, err)
	}
	if err := os.WriteFile(stamp, content, 0o644); err != nil {
		return fmt.Errorf("record image %s: %w", d.Image, err)
	}
	d.report(out, path, made)
	return nil
}

// made returns the record of an archive that exists, and whether it is that of the description.
func (d *Description) made(path, stamp string) (record, bool) {
	var made record
	content, err := os.ReadFile(stamp)
	if err != nil || json.Unmarshal(content, &made) != nil || made.Digest != d.digest {
		return record{}, false
	}
	_, err = os.Stat(path)
	return made, err == nil
}

// report prints the image, and a warning for each package whose version is not the tested one.
func (d *Description) report(out io.Writer, path string, made record) {
	fmt.Fprintf(out, "%s:%s %s\n", d.Image, strings.Join(d.Tags, ","), path)
	for _, line := range Differences(d.Packages, made.Versions) {
		fmt.Fprintf(out, "Warning: %s\n", line)
	}
}

// Differences returns a line for each package whose version is not the tested one.
func Differences(tested, versions map[string]string) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(tested)) {
		if want, got := tested[name], versions[name]; want != "" && got != want {
			lines = append(lines, fmt.Sprintf("package %s has version %s, tested is %s", name, got, want))
		}
	}
	return lines
}

// image returns the image with the files of the packages.
func (d *Description) image(ctx context.Context, archives []deb.Archive) (*image.Image, error) {
	made := &image.Image{
		Name: d.Image, User: d.User, Entrypoint: d.Entrypoint, Env: append([]string{image.Path}, d.Env...), StopSignal: d.StopSignal, Files: image.Base(),
	}
	for _, archive := range archives {
		err := archive.Open(ctx, func(files io.Reader) error { return made.AddTar(files, deb.Place) })
		if err != nil {
			return nil, err
		}
	}
	for _, link := range deb.Links() {
		made.Files[link] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("usr/" + link)}
	}
	for inside, source := range d.Files {
		if err := made.AddFile(filepath.Join(d.folder, source), inside); err != nil {
			return nil, err
		}
	}
	return made, nil
}
