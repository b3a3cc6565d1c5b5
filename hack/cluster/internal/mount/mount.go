// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mount finds and removes the mounts below a folder.
package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Below returns the mount points under dir in the text of a mountinfo file, the deepest and latest first.
func Below(mountinfo, dir string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if strings.HasPrefix(point, dir+"/") {
			points = append([]string{point}, points...)
		}
	}
	return points
}

// unescape replaces the octal escapes of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// Clear removes every mount below dir and returns their number. It detaches mounts that are in use.
func Clear(dir string) (int, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, fmt.Errorf("list mounts: %w", err)
	}
	points := Below(string(info), dir)
	for _, point := range points {
		err := unix.Unmount(point, unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return 0, fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return len(points), nil
}

// CanOverlay reports whether overlayfs works with layers below dir. It does not if dir is itself on an
// overlay.
func CanOverlay(dir string) (bool, error) {
	scratch, err := os.MkdirTemp(dir, ".overlay-")
	if err != nil {
		return false, fmt.Errorf("test overlayfs: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(scratch, name), 0o755); err != nil {
			return false, fmt.Errorf("test overlayfs: %w", err)
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", scratch)
	merged := filepath.Join(scratch, "merged")
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		return false, nil
	}
	if err := unix.Unmount(merged, 0); err != nil {
		return false, fmt.Errorf("unmount the overlayfs test: %w", err)
	}
	return true, nil
}
