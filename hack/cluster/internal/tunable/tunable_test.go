// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package tunable

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seamark-dev/seamark/hack/cluster/internal/expect"
)

func TestRestoreResetsChangedSettings(t *testing.T) {
	root, file := t.TempDir(), filepath.Join(t.TempDir(), "kept.json")
	set := func(name, value string) {
		path := filepath.Join(root, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.NoError(t, os.WriteFile(path, []byte(value+"\n"), 0o644))
	}
	set("kernel/panic", "0")
	set("vm/overcommit_memory", "0")
	expect.NoError(t, Save(root, file))
	set("kernel/panic", "10")
	// A second save must not overwrite the original settings.
	expect.NoError(t, Save(root, file))
	changed, err := Restore(root, file)
	expect.NoError(t, err)
	if diff := cmp.Diff([]string{"kernel/panic"}, changed); diff != "" {
		t.Error(diff)
	}
	got, err := os.ReadFile(filepath.Join(root, "kernel/panic"))
	if err != nil || string(got) != "0" {
		t.Errorf("kernel/panic = %q, error %v", got, err)
	}
}

func TestRestoreWithoutFileDoesNothing(t *testing.T) {
	changed, err := Restore(t.TempDir(), filepath.Join(t.TempDir(), "none"))
	if err != nil || changed != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
}
