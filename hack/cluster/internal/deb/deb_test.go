// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package deb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	root := t.TempDir()
	// The test program has an interpreter unless it is linked statically.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"/bin/there": self, "/bin/dynamic": "/bin/sh"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Missing(root, []Package{
		{Name: "there", File: "/bin/there"},
		{Name: "absent", File: "/bin/absent"},
		{Name: "any", File: "/bin/dynamic"},
		{Name: "not-static", File: "/bin/dynamic", Static: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"absent", "not-static"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMissingRejectsScript(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "text"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Missing(root, []Package{{Name: "p", File: "/text", Static: true}}); err == nil {
		t.Error("no error for a script")
	}
}
