// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package deb

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Archive is a downloaded package.
type Archive struct {
	Name, Version string
	// File is the path of the .deb file.
	File string
}

// installed returns the packages that an image does without, though others depend on them: only the scripts that install
// packages use them.
func installed() []string {
	return []string{"adduser", "debconf", "debianutils", "dpkg", "init-system-helpers", "install-info", "lsb-base", "passwd", "sysvinit-utils", "ucf"}
}

// Download downloads packages and all that they depend on into a folder, as for a machine that has only the packages of without.
func Download(ctx context.Context, folder string, names, without []string) ([]Archive, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("download Debian packages: %w", err)
	}
	if err := os.Mkdir(filepath.Join(folder, "partial"), 0o755); err != nil {
		return nil, fmt.Errorf("create a folder for Debian packages: %w", err)
	}
	var status strings.Builder
	for _, name := range append(installed(), without...) {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nVersion: 99:9999\nArchitecture: all\nMulti-Arch: foreign\n\n", name)
	}
	path := filepath.Join(folder, "status")
	if err := os.WriteFile(path, []byte(status.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the status of packages: %w", err)
	}
	options := []string{"--download-only", "--yes", "--no-install-recommends", "-o", "Dir::State::status=" + path,
		"-o", "Dir::Cache::archives=" + folder, "install"}
	if err := withLists(ctx, folder, append(options, names...)...); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil {
		return nil, fmt.Errorf("find Debian packages: %w", err)
	}
	archives := make([]Archive, 0, len(files))
	for _, file := range files {
		out, err := exec.CommandContext(ctx, "dpkg-deb", "--show", "--showformat=${Package} ${Version}", file).Output()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		name, version, _ := strings.Cut(string(out), " ")
		archives = append(archives, Archive{Name: name, Version: version, File: file})
	}
	return archives, nil
}

// Open calls read with the files of the package as a tar archive.
func (a Archive) Open(ctx context.Context, read func(io.Reader) error) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", a.File)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("unpack %s: %w", a.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("unpack %s: %w", a.Name, err)
	}
	if err := read(out); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("unpack %s: %w", a.Name, err)
	}
	// The archive may end with padding, which dpkg-deb must be able to write.
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("unpack %s: %w", a.Name, err)
	}
	return nil
}

// Place returns where an image has a file of a package, or nothing for a file that programs do not need. Both are relative to
// the root. /bin, /sbin and /lib are links to folders of /usr, as on every Debian machine: see Links.
func Place(file string) string {
	for _, folder := range []string{
		"usr/share/doc", "usr/share/doc-base", "usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/bug",
		"usr/share/bash-completion", "lib/systemd", "usr/lib/systemd", "etc/init.d", "etc/logrotate.d", "var/cache", "var/lib/dpkg",
	} {
		if file == folder || strings.HasPrefix(file, folder+"/") {
			return ""
		}
	}
	first, rest, _ := strings.Cut(file, "/")
	switch {
	case !slices.Contains(Links(), first):
		return file
	case rest == "":
		return ""
	}
	return "usr/" + file
}

// Links returns the folders of the root that are links to folders of /usr.
func Links() []string { return []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} }
