// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"strings"
	"time"
)

const (
	// maxLineBytes is the maximum length of a line of output.
	maxLineBytes = 16 << 10
	// maxLogs is the number of lines that are kept of each pod.
	maxLogs = 200
	// maxPendingLines is the number of lines that may wait for the loop. Containers that
	// write more are blocked.
	maxPendingLines = 256
)

// lineWriter splits one output stream of a container into lines and posts them to the loop. A line that is too long is cut. The last line
// does not need a newline.
type lineWriter struct {
	loop              *loop
	pod               *pod
	container, stream string
	rest              []byte
}

func (l *loop) writer(p *pod, container, stream string) *lineWriter {
	return &lineWriter{loop: l, pod: p, container: container, stream: stream}
}

// Write blocks while too many lines wait for the loop.
func (w *lineWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte{'\n'})
		w.add(line)
		if complete {
			w.flush()
		}
		rest = after
	}
	return len(b), nil
}

// Close posts the last line if it has no newline.
func (w *lineWriter) Close() error {
	if len(w.rest) > 0 {
		w.flush()
	}
	return nil
}

func (w *lineWriter) add(part []byte) {
	room := maxLineBytes - len(w.rest)
	if len(part) > room {
		part = part[:room]
	}
	w.rest = append(w.rest, part...)
}

func (w *lineWriter) flush() {
	line := strings.ToValidUTF8(strings.TrimSuffix(string(w.rest), "\r"), "\uFFFD")
	w.rest = w.rest[:0]
	w.loop.lines <- struct{}{}
	w.loop.inbox.Post(func(now time.Time) {
		<-w.loop.lines
		w.loop.addLine(now, w.pod, w.container, LogLine{Stream: w.stream, Text: line})
	})
}
