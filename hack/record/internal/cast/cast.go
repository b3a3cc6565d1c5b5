// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cast reads and writes recordings of terminals in the asciicast format of asciinema,
// version 2: a JSON header, and a JSON array for each output.
package cast

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// maxLine bounds the length of a line, and maxEvents the number of events.
const (
	maxLine   = 4 << 20
	maxEvents = 100_000
)

// Header is the first line of a recording.
type Header struct {
	// Version is 2.
	Version int `json:"version"`
	// Width and Height are the size of the terminal in cells.
	Width  int `json:"width"`
	Height int `json:"height"`
	// Title describes the recording.
	Title string `json:"title,omitempty"`
	// IdleTimeLimit is the longest time in seconds for which a player shows the same contents, or 0 for any.
	IdleTimeLimit float64 `json:"idle_time_limit,omitempty"`
}

// Event is an output of the recorded program.
type Event struct {
	// At is the time since the start.
	At time.Duration
	// Data is the output.
	Data string
}

// Recording is a recording of a terminal.
type Recording struct {
	Header Header
	Events []Event
}

// Add adds an output, unless it is empty.
func (r *Recording) Add(at time.Duration, data string) {
	if data != "" {
		r.Events = append(r.Events, Event{At: at, Data: data})
	}
}

// Write writes the recording.
func (r *Recording) Write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.Header); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for _, e := range r.Events {
		at := json.Number(fmt.Sprintf("%.6f", e.At.Seconds()))
		if err := encoder.Encode([]any{at, "o", e.Data}); err != nil {
			return fmt.Errorf("write event: %w", err)
		}
	}
	return nil
}

// Read reads a recording. Events other than output are left out.
func Read(in io.Reader) (*Recording, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	if !lines.Scan() {
		return nil, errors.Join(errors.New("line 1: header is missing"), lines.Err())
	}
	r := &Recording{}
	if err := json.Unmarshal(lines.Bytes(), &r.Header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if h := r.Header; h.Version != 2 || h.Width < 1 || h.Height < 1 || h.Width > 1000 || h.Height > 1000 {
		return nil, fmt.Errorf("line 1: version %d, width %d, height %d: must be version 2 and sizes of 1 to 1000",
			h.Version, h.Width, h.Height)
	}
	for number := 2; lines.Scan(); number++ {
		if number > maxEvents {
			return nil, fmt.Errorf("line %d: there must be at most %d events", number, maxEvents)
		}
		if err := r.parseEvent(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return r, nil
}

// parseEvent adds the event of a line. Times must not decrease.
func (r *Recording) parseEvent(line []byte) error {
	var seconds float64
	var kind, data string
	fields := []any{&seconds, &kind, &data}
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	if len(fields) != 3 {
		return fmt.Errorf("event has %d fields: must have 3", len(fields))
	}
	at := time.Duration(seconds * float64(time.Second))
	if last := len(r.Events) - 1; at < 0 || last >= 0 && at < r.Events[last].At {
		return fmt.Errorf("time %v is invalid: must not be before the previous event", at)
	}
	if kind == "o" {
		r.Add(at, data)
	}
	return nil
}

// Text converts the bytes of an output to text. It keeps the beginning of a character that a read
// divided until the next one.
type Text struct{ rest []byte }

// Next returns the text of the next bytes.
func (t *Text) Next(data []byte) string {
	data = append(t.rest, data...)
	end := len(data)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(data[i]) && !utf8.FullRune(data[i:]) {
			end = i
		}
	}
	t.rest = append([]byte(nil), data[end:]...)
	return string(data[:end])
}
