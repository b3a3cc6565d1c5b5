// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/local"
)

// printer writes one change.
type printer interface {
	Print(change local.Change) error
}

// lines shows each change by a printer.
type lines struct{ printer printer }

// Show prints what happens until the session has ended.
func (l lines) Show(s *session) error {
	for {
		batch := s.feed.next()
		if len(batch) == 0 {
			return nil
		}
		for _, change := range batch {
			if err := l.printer.Print(change); err != nil {
				return err
			}
		}
	}
}

// screen shows the run as a table on a terminal.
type screen struct {
	in         io.Reader
	out        io.Writer
	interrupts chan<- os.Signal
}

// Show draws the table until the session has ended, and leaves its last state behind.
func (d screen) Show(s *session) error {
	model := table.New(s, func() {
		select {
		case d.interrupts <- os.Interrupt:
		default:
			// Those that wait to be heeded are enough.
		}
	})
	var options []tea.ProgramOption
	// The standard input may be a manifest; bubbletea then takes keys from the terminal itself.
	if in, ok := d.in.(*os.File); !ok || term.IsTerminal(int(in.Fd())) {
		options = append(options, tea.WithInput(d.in))
	}
	return table.Run(model, d.out, options...)
}

// display returns what shows the run, by the options.
func (o *LocalOptions) display(s *session) display {
	if o.Output == "json" {
		return lines{output.NewJSON(o.Out)}
	}
	if o.terminal {
		return screen{o.In, o.Out, o.interrupts}
	}
	var pods []string
	for _, view := range s.runner.Snapshot() {
		pods = append(pods, view.Pod.Name)
	}
	return lines{output.NewText(o.Out, pods)}
}
