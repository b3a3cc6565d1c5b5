// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images tests that image builds are reproducible.
package images

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/test/process"
)

// TestReproducibleImages runs `make images` in two copies of the source, in differently named
// folders, and compares the image archives and the SBOMs.
func TestReproducibleImages(t *testing.T) {
	sources := sourceFiles(t)
	var digests [2]map[string]string
	for i, folder := range []string{"here", "in/another/place"} {
		root := filepath.Join(t.TempDir(), folder)
		copyTo(t, root, sources)
		out := filepath.Join(root, "out")
		run(t, root, "make", "--no-print-directory", "images", "VERSION=v1.2.3", "IMAGE_TAG=v1.2.3", "CLUSTER_DIR="+out)
		digests[i] = digestsOf(t, filepath.Join(out, "images"))
	}
	for _, name := range []string{
		"seamark-agent.tar", "seamark-manager.tar", "seamark-workloads.tar",
		"seamark-agent.cdx.json", "seamark-manager.cdx.json", "seamark-workloads.cdx.json", "seamark.cdx.json",
	} {
		if digests[0][name] == "" {
			t.Errorf("make images did not write %s", name)
		}
	}
	if diff := cmp.Diff(digests[0], digests[1]); diff != "" {
		t.Errorf("SHA-256 sums of the two builds:\n%s", diff)
	}
	for name, digest := range digests[0] {
		t.Logf("%s  %s", digest, name)
	}
}

// sourceFiles returns the paths, relative to the repository's root, of the files that git
// tracks or would add. Deleted files are omitted.
func sourceFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for name := range strings.SplitSeq(run(t, "../..", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		if name == "" {
			continue
		}
		if _, err := os.Lstat(filepath.Join("../..", name)); !errors.Is(err, fs.ErrNotExist) {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatal("git lists no files")
	}
	return files
}

func copyTo(t *testing.T, root string, files []string) {
	t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	return process.Output(t, command)
}

// digestsOf returns the SHA-256 sums of the files in a folder.
func digestsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		digests[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return digests
}
