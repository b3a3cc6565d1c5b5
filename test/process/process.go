// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process finds and runs programs in tests.
package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/test/await"
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

// Buffer has the output of a running program. It is for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p) //nolint:wrapcheck // it never fails
}

// Raw returns the output.
func (b *Buffer) Raw() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// String returns the output without escape sequences.
func (b *Buffer) String() string { return ansi.Strip(b.Raw()) }

// Await waits until the output without escape sequences contains the text.
func (b *Buffer) Await(tb testing.TB, text string) {
	tb.Helper()
	await.Until(tb, text, func(context.Context) (string, error) {
		if out := b.String(); !strings.Contains(out, text) {
			return "output: " + out, nil
		}
		return "", nil
	})
}
