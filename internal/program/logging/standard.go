// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"io"

	"github.com/go-logr/logr"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// maxStandardBytes is the maximum number of bytes of a line of the standard library.
const maxStandardBytes = 200

// Standard returns the output for the logger of the standard library. Its lines contain what servers
// send: net/http quotes up to 4 KiB of an answer that comes before the request. They are shortened,
// and have the level of runs, so that a container cannot fill the log.
func Standard(lines logr.Logger) io.Writer { return standard{lines.V(Runs)} }

type standard struct{ lines logr.Logger }

func (s standard) Write(line []byte) (int, error) {
	s.lines.Info("Message of the standard library", "message", text.Truncate(string(line), maxStandardBytes))
	return len(line), nil
}
