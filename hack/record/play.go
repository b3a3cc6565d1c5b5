// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/seamark-dev/seamark/hack/record/internal/cast"
)

// play runs the command in a pseudo-terminal and returns its output, with the times since the first
// output. The output is also written to standard output.
func play(ctx context.Context, command []string, header cast.Header) (*cast.Recording, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=")
	size := &pty.Winsize{Rows: uint16(header.Height), Cols: uint16(header.Width)}
	terminal, err := pty.StartWithSize(cmd, size)
	if err != nil {
		return nil, fmt.Errorf("run %s in a terminal: %w", command[0], err)
	}
	defer terminal.Close()
	// The emulator answers the questions of programs about the terminal, such as the position of the cursor.
	emulator := vt10x.New(vt10x.WithSize(header.Width, header.Height), vt10x.WithWriter(terminal))
	recording := &cast.Recording{Header: header}
	var began time.Time
	buffer := make([]byte, 32<<10)
	var text cast.Text
	for {
		n, err := terminal.Read(buffer)
		if n > 0 {
			if began.IsZero() {
				began = time.Now()
			}
			recording.Add(time.Since(began), text.Next(buffer[:n]))
			if _, err := io.MultiWriter(os.Stdout, emulator).Write(buffer[:n]); err != nil {
				return nil, fmt.Errorf("show output: %w", err)
			}
		}
		// Linux reports EIO at the end of the last process in the terminal.
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read output of %s: %w", command[0], err)
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	return recording, nil
}
