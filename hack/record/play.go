// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// frame is what the terminal shows from a time on: the markup of each row.
type frame struct {
	at   time.Duration
	rows []string
}

// play runs the command in a pseudo-terminal of the size of the image. It returns the recording, and
// a frame for each output, with the times since the first one. The output is also written to standard output.
func play(ctx context.Context, command []string, image image) (recording []byte, frames []frame, err error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=")
	size := &pty.Winsize{Rows: uint16(image.rows), Cols: uint16(image.columns)}
	terminal, err := pty.StartWithSize(cmd, size)
	if err != nil {
		return nil, nil, fmt.Errorf("run %s in a terminal: %w", command[0], err)
	}
	defer terminal.Close()
	// The emulator answers the questions of programs about the terminal, such as the position of the cursor.
	emulator := vt10x.New(vt10x.WithSize(image.columns, image.rows), vt10x.WithWriter(terminal))
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(map[string]any{
		"version": 2, "width": image.columns, "height": image.rows, "title": image.title, "idle_time_limit": maxWait.Seconds(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("write the header of the recording: %w", err)
	}
	var began time.Time
	var data []byte
	buffer := make([]byte, 32<<10)
	for {
		n, err := terminal.Read(buffer)
		// Linux reports EIO at the end of the last process in the terminal.
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read output of %s: %w", command[0], err)
		}
		now := time.Now()
		if began.IsZero() {
			began = now
		}
		at := now.Sub(began).Round(time.Microsecond)
		data = append(data, buffer[:n]...)
		// Both writers accept any bytes. A character that a read divided belongs to the next output.
		_, _ = io.MultiWriter(os.Stdout, emulator).Write(buffer[:n])
		text := data[:whole(data)]
		if err := encoder.Encode([]any{at.Seconds(), "o", string(text)}); err != nil {
			return nil, nil, fmt.Errorf("write an event of the recording: %w", err)
		}
		data = data[len(text):]
		frames = append(frames, frame{at, rowsOf(emulator)})
	}
	if err := cmd.Wait(); err != nil {
		return nil, nil, fmt.Errorf("run %s: %w", command[0], err)
	}
	return out.Bytes(), frames, nil
}

// whole returns the length of data without a character at its end that is not complete.
func whole(data []byte) int {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return i
			}
			break
		}
	}
	return len(data)
}

// thin removes frames that show the same as the one before, or that are shown for less than a step,
// and shortens waits.
func thin(frames []frame) []frame {
	var kept []frame
	var now, before time.Duration
	for i, f := range frames {
		now += min(f.at-before, maxWait)
		before = f.at
		brief := i+1 < len(frames) && frames[i+1].at-f.at < step
		if last := len(kept) - 1; last >= 0 && (brief && now-kept[last].at < step || slices.Equal(kept[last].rows, f.rows)) {
			continue
		}
		kept = append(kept, frame{now, f.rows})
	}
	return kept
}
