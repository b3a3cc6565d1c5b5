// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"testing/fstest"
)

// AddTar adds the files of a tar archive to the image, with their modes, owners and links. place returns the path in the
// image of a path in the archive, both without a slash at the beginning, or nothing for a file that is left out. A file
// replaces an earlier one, but a folder does not.
func (i *Image) AddTar(archive io.Reader, place func(string) string) error {
	if i.Files == nil {
		i.Files = fstest.MapFS{}
	}
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read archive for image %s: %w", i.Name, err)
		}
		name := place(inside(header.Name))
		if name == "" {
			continue
		}
		file := &fstest.MapFile{Mode: header.FileInfo().Mode()}
		if header.Uid != 0 || header.Gid != 0 {
			file.Sys = &tar.Header{Uid: header.Uid, Gid: header.Gid}
		}
		switch header.Typeflag {
		case tar.TypeReg:
			if file.Data, err = io.ReadAll(reader); err != nil {
				return fmt.Errorf("read %s for image %s: %w", header.Name, i.Name, err)
			}
		case tar.TypeSymlink:
			file.Mode, file.Data = fs.ModeSymlink|0o777, []byte(header.Linkname)
		case tar.TypeLink:
			// The order of an image differs from that of the archive: a hard link could be before its target.
			if file = i.Files[place(inside(header.Linkname))]; file == nil {
				return fmt.Errorf("add %s to image %s: %s, which it links to, is not in the image", header.Name, i.Name, header.Linkname)
			}
		case tar.TypeDir:
			if i.Files[name] != nil {
				continue
			}
		default:
			return fmt.Errorf("add %s to image %s: its type %q is not supported", header.Name, i.Name, header.Typeflag)
		}
		i.Files[name] = file
	}
}

// inside returns the path of a file in an archive without the root.
func inside(name string) string { return path.Clean("/" + name)[1:] }
