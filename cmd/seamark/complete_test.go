// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seamark-dev/seamark/test/expect"
)

// kubectl_complete-seamark passes its arguments as they are, also empty ones.
func TestCompletionOfPlugin(t *testing.T) {
	folder := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "kubectl-seamark"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o700))
	t.Setenv("PATH", folder)
	output, err := exec.CommandContext(t.Context(), "./kubectl_complete-seamark", "get", "--state", "a b", "").CombinedOutput()
	expect.NoError(t, err)
	expect.Equal(t, "arguments of kubectl-seamark", "<__complete><get><--state><a b><>", string(output))
}
