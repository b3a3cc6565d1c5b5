// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"strings"
	"time"
)

const (
	// maxLineBytes is the longest line kept of a container's output.
	maxLineBytes = 16 << 10
	// maxLogs is how many lines are kept of a pod.
	maxLogs = 200
)

// lines cuts a container's output into lines and posts them to the loop. A line that is
// too long loses its end; the last one needs none.
type lines struct {
	loop              *loop
	pod               *pod
	container, stream string
	rest              []byte
}

func (l *loop) newLines(p *pod, container, stream string) *lines {
	return &lines{loop: l, pod: p, container: container, stream: stream}
}

// Write waits while too many lines are waiting for the loop.
func (w *lines) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		w.add(line)
		if whole {
			w.flush()
		}
		rest = after
	}
	return len(b), nil
}

// Close posts what is left of a line without an end.
func (w *lines) Close() error {
	if len(w.rest) > 0 {
		w.flush()
	}
	return nil
}

func (w *lines) add(part []byte) {
	room := maxLineBytes - len(w.rest)
	if len(part) > room {
		part = part[:room]
	}
	w.rest = append(w.rest, part...)
}

func (w *lines) flush() {
	text := strings.ToValidUTF8(strings.TrimSuffix(string(w.rest), "\r"), "\uFFFD")
	w.rest = w.rest[:0]
	w.loop.lines <- struct{}{}
	w.loop.mail.post(func(l *loop, now time.Time) {
		<-l.lines
		change := w.pod.change(now, KindLog, w.container)
		change.Log = &LogLine{Stream: w.stream, Text: text}
		w.pod.logs.add(change)
		l.tell(change)
	})
}

// logRing keeps the last lines of a pod.
type logRing struct {
	lines []Change
	// first is the oldest, once the ring is full.
	first int
}

func (r *logRing) add(line Change) {
	if len(r.lines) < maxLogs {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.first] = line
	r.first = (r.first + 1) % maxLogs
}

// all returns the lines, oldest first.
func (r *logRing) all() []Change {
	return append(append([]Change{}, r.lines[r.first:]...), r.lines[:r.first]...)
}
