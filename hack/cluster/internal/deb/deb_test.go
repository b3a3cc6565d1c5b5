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
