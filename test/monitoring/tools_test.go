// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// tool returns the path of a program that make has put into $SEAMARK_BIN.
func tool(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("SEAMARK_BIN")
	if folder == "" {
		t.Fatal("SEAMARK_BIN is not set: run `make test-monitoring`")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("find %s: %v: run `make test-monitoring`", name, err)
	}
	return path
}

// output runs a tool in the root of the repository and returns its standard output.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), tool(t, name), args...)
	command.Dir = root
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.Bytes()
}
