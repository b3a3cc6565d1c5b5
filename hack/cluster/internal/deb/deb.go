// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deb sees to the Debian packages that a cluster's nodes call for.
package deb

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is a Debian package, and the file by which its presence is known.
type Package struct {
	Name string
	File string
	// Static asks that the file is a program without shared libraries: it is put into images by itself.
	Static bool
}

// Required lists the packages of a node.
func Required() []Package {
	return []Package{
		{Name: "runc", File: "/usr/sbin/runc"},
		{Name: "containernetworking-plugins", File: "/usr/lib/cni/ptp"},
		{Name: "iptables", File: "/usr/sbin/iptables"},
		{Name: "mount", File: "/bin/mount"},
		{Name: "busybox-static", File: "/bin/busybox", Static: true},
	}
}

// Missing lists the packages that root, the root of the file system, lacks.
func Missing(root string, packages []Package) ([]string, error) {
	var missing []string
	for _, pkg := range packages {
		ok, err := pkg.present(root)
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, pkg.Name)
		}
	}
	return missing, nil
}

func (p Package) present(root string) (bool, error) {
	path := filepath.Join(root, p.File)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", p.Name, err)
	}
	if !p.Static {
		return true, nil
	}
	program, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", path, err)
	}
	defer func() { _ = program.Close() }()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}

// Ensure installs what is missing, or says what is where it cannot.
func Ensure(ctx context.Context, progress io.Writer, packages []Package) error {
	missing, err := Missing("/", packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("these Debian packages are missing, or what is the like here: %s", list)
	}
	_, _ = fmt.Fprintf(progress, "installing Debian packages: %s\n", list)
	args := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := aptGet(ctx, "", args...); err == nil {
		return nil
	}
	// The lists of a fresh machine are empty or old.
	if err := aptGet(ctx, "", "update"); err != nil {
		return fmt.Errorf("these Debian packages are missing: %s: %w", list, err)
	}
	if err := aptGet(ctx, "", args...); err != nil {
		return fmt.Errorf("these Debian packages are missing: %s: %w", list, err)
	}
	return nil
}

// Extract unpacks a package into dir without installing it, so that none of its services is started.
func Extract(ctx context.Context, name, dir string) error {
	scratch, err := os.MkdirTemp("", "seamark-deb-")
	if err != nil {
		return fmt.Errorf("extract package %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := aptGet(ctx, scratch, "download", name); err != nil {
		if err := aptGet(ctx, scratch, "update"); err != nil {
			return err
		}
		if err := aptGet(ctx, scratch, "download", name); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(scratch, name+"_*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("extract package %s: found %d files of it (%w)", name, len(files), err)
	}
	out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", files[0], dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("extract package %s: %w: %s", name, err, out)
	}
	return nil
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	// apt would otherwise drop to a user that may not write here.
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "APT::Sandbox::User=root"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
