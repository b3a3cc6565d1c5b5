// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"io"

	"github.com/seamark-dev/seamark/internal/program/text"
)

// terminal is a writer whose text may end in a terminal.
type terminal struct{ out io.Writer }

// Safe returns a writer that writes text.Safe of what it gets. All commands write to such a writer
// unless they ask for the one below it by Raw, so text from containers, manifests and the API is safe
// without further care. Each call of Write must have whole characters.
func Safe(out io.Writer) io.Writer { return terminal{out} }

// Raw returns the writer below the writer of Safe, or any other writer as it is. It is for JSON, YAML
// and templates, which programs need as they are, and for colors. Who adds colors must pass the rest of
// the line to text.Safe.
func Raw(out io.Writer) io.Writer {
	if t, isSafe := out.(terminal); isSafe {
		return t.out
	}
	return out
}

// Write writes the text in its safe form. It returns the length of p, or an error.
func (t terminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.out, text.Safe(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
