// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record runs a program in a pseudo-terminal, and writes its output as an asciinema
// recording, version 2, and as an animated SVG image.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
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
