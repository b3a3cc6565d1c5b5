// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record runs a program in a pseudo-terminal, and writes its output as an asciinema
// recording, version 2, and as an animated SVG image.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

const (
	// maxImage is the largest size of an image in bytes. The image is part of the repository.
	maxImage = 200 << 10
	// step is the shortest time for which a frame of the image is shown.
	step = 100 * time.Millisecond
	// maxWait is the longest time for which the terminal does not change, in both outputs.
	maxWait = 2 * time.Second
	// hold is how long the last frame is shown before the animation begins again.
	hold = 6 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var image image
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	recordingFile := flags.String("recording", "", "asciinema recording to write")
	imageFile := flags.String("image", "", "SVG image to write")
	flags.StringVar(&image.title, "title", "", "title of the recording and the image")
	flags.StringVar(&image.description, "description", "", "what the image shows, for screen readers")
	flags.IntVar(&image.columns, "columns", 100, "width of the terminal")
	flags.IntVar(&image.rows, "rows", 24, "height of the terminal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *recordingFile == "" || *imageFile == "" || image.title == "" || image.description == "" || flags.NArg() == 0 {
		return errors.New("--recording, --image, --title, --description and a command are required")
	}
	recording, frames, err := play(ctx, flags.Args(), image)
	if err != nil {
		return err
	}
	if err := os.WriteFile(*recordingFile, recording, 0o644); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	content := image.render(thin(frames))
	if len(content) > maxImage {
		return fmt.Errorf("image %s has %d bytes: must be at most %d", *imageFile, len(content), maxImage)
	}
	if err := os.WriteFile(*imageFile, content, 0o644); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}

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
