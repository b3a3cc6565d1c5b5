// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process finds and runs programs in tests.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Output runs the command and returns its standard output. A failure ends the test.
func Output(tb testing.TB, command *exec.Cmd) string {
	tb.Helper()
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		tb.Fatalf("%s: %v\n%s%s", command, err, out, stderr.String())
	}
	return string(out)
}

// Built returns the absolute path of a program that make has put into $SEAMARK_BIN. Tests do not
// compile programs: on a machine with empty caches that takes longer than a test may. The error
// names the make target that builds the program and runs the test.
func Built(name, target string) (string, error) {
	folder := os.Getenv("SEAMARK_BIN")
	if folder == "" {
		return "", fmt.Errorf("find program %s: SEAMARK_BIN is not set: run `make %s`", name, target)
	}
	path, err := filepath.Abs(filepath.Join(folder, name))
	if err != nil {
		return "", fmt.Errorf("find program %s: %w", name, err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find program %s: %w: run `make %s`", name, err, target)
	}
	return path, nil
}
