// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShortFitsASocketAddress(t *testing.T) {
	// The last of the 108 bytes terminates the string.
	const longest = 107
	tests := map[string]Dir{
		"short":          "/src/.cluster",
		"maximum length": Dir("/" + strings.Repeat("d", maxDirLength-1)),
		"too long":       Dir("/" + strings.Repeat("d", maxDirLength)),
		"very long":      Dir("/" + strings.Repeat("deep/", 80) + "d"),
	}
	for name, dir := range tests {
		t.Run(name, func(t *testing.T) {
			node := dir.Node("node-99")
			for _, socket := range []string{
				node.Socket() + ".ttrpc",
				filepath.Join(node.Kubelet(), "pod-resources", "kubelet.sock"),
				filepath.Join(node.Kubelet(), "plugins_registry", "example-driver.sock"),
			} {
				short := dir.Short(socket)
				if len(short) > longest {
					t.Errorf("%s has %d bytes", short, len(short))
				}
				if tail := strings.TrimPrefix(socket, string(dir)); !strings.HasSuffix(short, tail) {
					t.Errorf("%s is not the same file as %s", short, socket)
				}
			}
		})
	}
}

func TestShortLeavesOtherPathsAlone(t *testing.T) {
	dir := Dir("/" + strings.Repeat("d", 100))
	if got := dir.Short("/run/elsewhere.sock"); got != "/run/elsewhere.sock" {
		t.Errorf("got %s", got)
	}
}

func TestNewResolvesLinks(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "real")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, link} {
		dir, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(dir) != folder {
			t.Errorf("New(%s) = %s", path, dir)
		}
	}
}
