// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive writes archives whose bytes depend only on their entries and one time: entries in the given order,
// owned by root, without other metadata.
package archive

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Entry is a file in an archive.
type Entry struct {
	// Name is the path, with slashes and relative.
	Name string
	// Mode is the permissions of the file.
	Mode fs.FileMode
	// Data is the content.
	Data []byte
}

// Tar writes a tar archive.
func Tar(w io.Writer, entries []Entry, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, entry := range entries {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: entry.Name, Mode: int64(entry.Mode.Perm()), Size: int64(len(entry.Data)),
			ModTime: at, Format: tar.FormatPAX,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("add %s: %w", entry.Name, err)
		}
		if _, err := archive.Write(entry.Data); err != nil {
			return fmt.Errorf("add %s: %w", entry.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// TarGzip writes a tar archive that gzip has compressed.
func TarGzip(w io.Writer, entries []Entry, at time.Time) error {
	compressed := gzip.NewWriter(w)
	if err := Tar(compressed, entries, at); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// Zip writes a zip archive.
func Zip(w io.Writer, entries []Entry, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, entry := range entries {
		header := &zip.FileHeader{Name: entry.Name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(entry.Mode.Perm())
		file, err := archive.CreateHeader(header)
		if err != nil {
			return fmt.Errorf("add %s: %w", entry.Name, err)
		}
		if _, err := file.Write(entry.Data); err != nil {
			return fmt.Errorf("add %s: %w", entry.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}
