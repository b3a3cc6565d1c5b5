// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs programs in tests.
package process

import (
	"os/exec"
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

// Tool returns the path of a tool that hack/tools pins, and builds it if necessary. root is
// the root of the repository.
func Tool(tb testing.TB, root, name string) string {
	tb.Helper()
	command := exec.CommandContext(tb.Context(), "go", "tool", "-modfile=hack/tools/go.mod", "-n", name)
	command.Dir = root
	return strings.TrimSpace(Output(tb, command))
}
