// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

// onTerminal returns what the function writes to a terminal, as commands write to it.
func onTerminal(t *testing.T, write func(out io.Writer) error) string {
	t.Helper()
	terminal, other, err := pty.Open()
	expect.NoError(t, err)
	defer terminal.Close()
	shown := make(chan string)
	go func() {
		// Reading ends with an error when the other end is closed.
		content, _ := io.ReadAll(terminal)
		shown <- strings.ReplaceAll(string(content), "\r\n", "\n")
	}()
	err = write(printing.Safe(other))
	expect.NoError(t, other.Close())
	content := <-shown
	expect.NoError(t, err)
	return content
}

// CheckColors checks that a text has colors on a terminal, which NO_COLOR and a dumb terminal turn off, and is safe. The
// function writes text with texttest.Hostile in it. It returns the text with colors.
func CheckColors(t *testing.T, write func(out io.Writer) error) string {
	t.Helper()
	shown := func(term, noColor string) string {
		t.Setenv("TERM", term)
		t.Setenv("NO_COLOR", noColor)
		return onTerminal(t, write)
	}
	for _, plain := range []string{shown("dumb", ""), shown("xterm-256color", "1")} {
		texttest.Check(t, plain)
	}
	colored := shown("xterm-256color", "")
	texttest.CheckColored(t, colored)
	return colored
}
