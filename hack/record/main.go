// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record records a program in a pseudo-terminal as an asciinema recording, version 2, and
// converts the recording to an animated SVG image.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/seamark-dev/seamark/hack/record/internal/cast"
	"github.com/seamark-dev/seamark/hack/record/internal/screen"
	"github.com/seamark-dev/seamark/hack/record/internal/svg"
)

// maxImage is the largest size of an image in bytes. The image is part of the repository.
const maxImage = 200 << 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	recording, image   string
	title, description string
	columns, rows      int
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	flags.StringVar(&o.recording, "recording", "", "asciinema recording to write, or to read if no command is given")
	flags.StringVar(&o.image, "image", "", "SVG image to write")
	flags.StringVar(&o.title, "title", "", "title of the recording and the image")
	flags.StringVar(&o.description, "description", "", "what the image shows, for screen readers")
	flags.IntVar(&o.columns, "columns", 100, "width of the terminal")
	flags.IntVar(&o.rows, "rows", 24, "height of the terminal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.recording == "" || o.image == "" || o.title == "" || o.description == "" {
		return errors.New("--recording, --image, --title and --description are required")
	}
	if flags.NArg() > 0 {
		if err := o.record(ctx, flags.Args()); err != nil {
			return err
		}
	}
	return o.draw()
}

// record runs the command and writes the recording.
func (o options) record(ctx context.Context, command []string) error {
	recording, err := play(ctx, command, cast.Header{
		Version: 2, Width: o.columns, Height: o.rows, Title: o.title, IdleTimeLimit: 2,
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := recording.Write(&out); err != nil {
		return err
	}
	return writeFile(o.recording, out.Bytes())
}

// draw reads the recording and writes the image.
func (o options) draw() error {
	file, err := os.Open(o.recording)
	if err != nil {
		return fmt.Errorf("read recording: %w", err)
	}
	defer file.Close()
	recording, err := cast.Read(file)
	if err != nil {
		return fmt.Errorf("read recording %s: %w", o.recording, err)
	}
	frames := screen.Frames(recording, 100*time.Millisecond)
	image := svg.Image{
		Title: o.title, Description: o.description,
		Columns: recording.Header.Width, Rows: recording.Header.Height, Hold: 6 * time.Second,
	}
	content := image.Render(frames)
	if len(content) > maxImage {
		return fmt.Errorf("image %s has %d bytes: must be at most %d", o.image, len(content), maxImage)
	}
	fmt.Printf("%s: %d frames, %d bytes\n", o.image, len(frames), len(content))
	return writeFile(o.image, content)
}

// writeFile writes a file, and its folder if it does not exist.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
