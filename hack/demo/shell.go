// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// keystroke is the time between two typed characters.
	keystroke = 35 * time.Millisecond
	// reading is the time for which a viewer reads an output.
	reading = 2 * time.Second
	// clearScreen erases the terminal.
	clearScreen = "\x1b[2J\x1b[H"
)

// shell shows commands with their output, as in the terminal of a user.
type shell struct {
	out io.Writer
	// typing reports whether commands are typed at the speed of a user, in color.
	typing bool
	run    func(ctx context.Context, line string, out io.Writer) error
}

// system runs a command line in the shell of the system. Errors of the commands go to standard error.
func system(ctx context.Context, line string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", line, err)
	}
	return nil
}

// note shows a comment.
func (s *shell) note(format string, args ...any) {
	fmt.Fprintln(s.out, s.color("90", fmt.Sprintf("# "+format, args...)))
}

// color colors a text in a recording.
func (s *shell) color(code, text string) string {
	if !s.typing {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// scene begins an empty screen with a comment, in a recording.
func (s *shell) scene(text string) {
	if s.typing {
		fmt.Fprint(s.out, clearScreen)
	} else {
		fmt.Fprintln(s.out)
	}
	s.note("%s", text)
}

// command shows a command line and runs it.
func (s *shell) command(ctx context.Context, line string) error {
	if err := s.show(ctx, line); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	return s.execute(ctx, line)
}

func (s *shell) show(ctx context.Context, text string) error {
	fmt.Fprint(s.out, s.color("1;34", "$"), " ")
	for _, char := range text {
		if err := s.pause(ctx, keystroke); err != nil {
			return err
		}
		fmt.Fprint(s.out, string(char))
	}
	return s.pause(ctx, 10*keystroke)
}

// execute runs a command line, and leaves time to read its output.
func (s *shell) execute(ctx context.Context, line string) error {
	if err := s.run(ctx, line, s.out); err != nil {
		return err
	}
	return s.pause(ctx, reading)
}

// pause waits in a recording, or until ctx ends.
func (s *shell) pause(ctx context.Context, d time.Duration) error {
	if !s.typing {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
