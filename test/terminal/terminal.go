// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal runs programs on a terminal in tests.
package terminal

import (
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/creack/pty"

	"github.com/seamark-dev/seamark/test/process"
)

// Terminal is a terminal with a program.
type Terminal struct {
	// Output is what the program has written.
	Output  process.Buffer
	command *exec.Cmd
	file    *os.File
	read    chan struct{}
}

// Start starts the command on a terminal of the size. The terminal closes when the test ends.
func Start(tb testing.TB, command *exec.Cmd, rows, columns uint16) *Terminal {
	tb.Helper()
	command.Env = append(os.Environ(), "TERM=xterm-256color")
	file, err := pty.StartWithSize(command, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		tb.Fatal(err)
	}
	t := &Terminal{command: command, file: file, read: make(chan struct{})}
	tb.Cleanup(func() { _ = file.Close() })
	go func() {
		defer close(t.read)
		// Reading from a closed terminal is an error.
		_, _ = io.Copy(&t.Output, file)
	}()
	return t
}

// Press presses keys.
func (t *Terminal) Press(tb testing.TB, keys string) {
	tb.Helper()
	if _, err := io.WriteString(t.file, keys); err != nil {
		tb.Fatal(err)
	}
}

// Resize changes the size.
func (t *Terminal) Resize(tb testing.TB, rows, columns uint16) {
	tb.Helper()
	if err := pty.Setsize(t.file, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		tb.Fatal(err)
	}
}

// Wait waits until the program has ended and its output is complete.
func (t *Terminal) Wait() error {
	err := t.command.Wait()
	<-t.read
	return err
}
