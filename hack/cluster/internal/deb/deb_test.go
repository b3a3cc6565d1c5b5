// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package deb

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestMissing(t *testing.T) {
	root := t.TempDir()
	// The test program has an interpreter unless it is linked statically.
	self, err := os.Executable()
	expect.NoError(t, err)
	for name, target := range map[string]string{"/bin/there": self, "/bin/dynamic": "/bin/sh"} {
		path := filepath.Join(root, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.Symlink(target, path))
	}
	got, err := Missing(root, []Package{
		{Name: "there", File: "/bin/there"},
		{Name: "absent", File: "/bin/absent"},
		{Name: "any", File: "/bin/dynamic"},
		{Name: "not-static", File: "/bin/dynamic", Static: true},
	})
	expect.NoError(t, err)
	if diff := cmp.Diff([]string{"absent", "not-static"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMissingRejectsScript(t *testing.T) {
	root := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(root, "text"), []byte("#!/bin/sh\n"), 0o755))
	if _, err := Missing(root, []Package{{Name: "p", File: "/text", Static: true}}); err == nil {
		t.Error("no error for a script")
	}
}

func TestPlace(t *testing.T) {
	for file, want := range map[string]string{
		"bin/dash":              "usr/bin/dash",
		"lib64/ld-linux.so.2":   "usr/lib64/ld-linux.so.2",
		"lib":                   "",
		"usr/lib":               "usr/lib",
		"library/x":             "library/x",
		"etc/default/db":        "etc/default/db",
		"etc/init.d/db":         "",
		"usr/share/doc/db/copy": "",
		"usr/share/doctrine":    "usr/share/doctrine",
		"lib/systemd/system/db": "",
	} {
		if got := Place(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}
