// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package printing

import (
	"bytes"
	"io"
	"os"

	"github.com/liggitt/tabwriter"
	"k8s.io/cli-runtime/pkg/printers"
)

// Stream prints one result after another, as `kubectl get --watch` does: a table has one header,
// and its columns do not become narrower.
type Stream struct {
	flags   *Flags
	out     io.Writer
	colors  bool
	text    bytes.Buffer
	columns *tabwriter.Writer
	headed  bool
	// structured prints JSON, YAML and templates. It counts the objects.
	structured printers.ResourcePrinter
}

// Stream returns a stream in the format of the flags.
func (f *Flags) Stream(out io.Writer) (*Stream, error) {
	s := &Stream{flags: f, out: out, colors: HasColors(out, os.Getenv)}
	s.columns = printers.GetNewTabWriter(&s.text)
	if f.IsTable() || f.Output == "name" {
		return s, nil
	}
	var err error
	s.structured, err = f.structured()
	return s, err
}

// Print prints the result after the previous one.
func (s *Stream) Print(result Result) error {
	switch {
	case s.structured != nil:
		return printObject(s.out, s.structured, result)
	case s.flags.Output == "name":
		return write(s.out, result.names())
	}
	lines, err := s.flags.layOut(result, &s.text, s.columns, s.colors)
	if err != nil {
		return err
	}
	if s.headed || s.flags.NoHeaders {
		lines = lines[1:]
	}
	s.headed = true
	return write(Raw(s.out), lines)
}
