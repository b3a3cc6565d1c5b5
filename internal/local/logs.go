// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"strings"
	"time"

	"github.com/seamark-dev/seamark/internal/program/inbox"
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

// output splits the output of containers into lines and posts them to the loop.
type output struct {
	inbox   *inbox.Inbox
	changes *changes
	// pending has a token for each line that waits for the loop.
	pending chan struct{}
}

func newOutput(inbox *inbox.Inbox, changes *changes) *output {
	return &output{inbox: inbox, changes: changes, pending: make(chan struct{}, maxPendingLines)}
}

// writer returns a writer for one stream of a container.
func (o *output) writer(p *pod, container, stream string) *lineWriter {
	return &lineWriter{output: o, pod: p, container: container, stream: stream}
}

// lineWriter splits one stream into lines. A line that is too long is cut. The last line
// does not need a newline.
type lineWriter struct {
	output            *output
	pod               *pod
	container, stream string
	rest              []byte
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
	w.output.pending <- struct{}{}
	w.output.inbox.Post(func(now time.Time) {
		<-w.output.pending
		w.output.changes.log(now, w.pod, w.container, LogLine{Stream: w.stream, Text: line})
	})
}

// logRing keeps the last lines of a pod.
type logRing struct {
	lines []Change
	// first is the index of the oldest line when the ring is full.
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
