// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deb provides the Debian packages that the nodes of a cluster need.
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

// Package is a Debian package and a file that shows whether it is installed.
type Package struct {
	Name string
	File string
	// Static requires a program without shared libraries, for use in images.
	Static bool
}

// Required returns the packages that a node needs.
func Required() []Package {
	return []Package{
		{Name: "runc", File: "/usr/sbin/runc"},
		{Name: "containernetworking-plugins", File: "/usr/lib/cni/ptp"},
		{Name: "iptables", File: "/usr/sbin/iptables"},
		{Name: "mount", File: "/bin/mount"},
		{Name: "busybox-static", File: "/bin/busybox", Static: true},
	}
}

// Missing returns the packages whose files are missing in the file system at root.
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
		return false, fmt.Errorf("find %s: %w", p.Name, err)
	}
	if !p.Static {
		return true, nil
	}
	program, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = program.Close() }()
	for _, segment := range program.Progs {
		if segment.Type == elf.PT_INTERP {
			return false, nil
		}
	}
	return true, nil
}

// Ensure installs missing packages. If it cannot, the error names them.
func Ensure(ctx context.Context, progress io.Writer, packages []Package) error {
	missing, err := Missing("/", packages)
	if err != nil || len(missing) == 0 {
		return err
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install these Debian packages or equivalent ones: %s", list)
	}
	_, _ = fmt.Fprintf(progress, "installing Debian packages: %s\n", list)
	args := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := withLists(ctx, "", args...); err != nil {
		return fmt.Errorf("install Debian packages %s: %w", list, err)
	}
	return nil
}

// Extract unpacks a package into dir. Installing it would start its services.
func Extract(ctx context.Context, name, dir string) error {
	scratch, err := os.MkdirTemp("", "seamark-deb-")
	if err != nil {
		return fmt.Errorf("extract package %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := withLists(ctx, scratch, "download", name); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(scratch, name+"_*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("extract package %s: found %d archives (%w)", name, len(files), err)
	}
	out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", files[0], dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("extract package %s: %w: %s", name, err, out)
	}
	return nil
}

// withLists runs apt-get and, if it fails, once more with new package lists: those of a fresh machine are empty or outdated.
func withLists(ctx context.Context, dir string, args ...string) error {
	if aptGet(ctx, dir, args...) == nil {
		return nil
	}
	if err := aptGet(ctx, dir, "update"); err != nil {
		return err
	}
	return aptGet(ctx, dir, args...)
}

func aptGet(ctx context.Context, dir string, args ...string) error {
	// By default, apt downloads as a user that cannot write to dir.
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "APT::Sandbox::User=root"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
