// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"os"

	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/table"
)

// display returns what shows the session until it has ended.
func (o *Options) display(ctx context.Context, s *session) func() error {
	switch {
	case o.Output == "json":
		return func() error { return s.each(output.NewJSON(printing.Raw(o.Out)).Print) }
	case o.terminal:
		return func() error { return o.showTable(ctx, s) }
	}
	var pods []string
	for _, view := range s.runner.Snapshot() {
		pods = append(pods, view.Pod.Name)
	}
	s.brief = !o.Verbose
	return func() error {
		text := output.NewText(o.Out, pods, o.Verbose)
		if err := s.each(text.Print); err != nil {
			return err
		}
		return text.Conclude(s.Snapshot())
	}
}

// showTable draws a table until the session has ended. The last state of the table stays on the
// terminal.
func (o *Options) showTable(ctx context.Context, s *session) error {
	model := table.New(s, func() {
		select {
		case o.interrupts <- os.Interrupt:
		default:
			// Enough interrupts are pending.
		}
	})
	// It shows how the pods stop, also if ctx ends. If the standard input is a manifest, bubbletea opens
	// the terminal to read keys.
	if err := model.Show(context.WithoutCancel(ctx), o.IOStreams); err != nil {
		return err
	}
	for _, line := range model.Last() {
		fmt.Fprintln(printing.Raw(o.Out), line)
	}
	return nil
}
