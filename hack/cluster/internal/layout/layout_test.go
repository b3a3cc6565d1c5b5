// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
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
