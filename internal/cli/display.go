// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/local"
)

// printer prints one change.
type printer interface {
	Print(change local.Change) error
}

// concluder prints the state of the pods at the end of the run.
type concluder interface {
	Conclude(views []local.PodView) error
}

// lineDisplay prints each change.
type lineDisplay struct{ printer printer }

// Show prints changes until the session has ended.
func (d lineDisplay) Show(s *session) error {
	for {
		batch := s.feed.next()
		if len(batch) == 0 {
			if end, ok := d.printer.(concluder); ok {
				return end.Conclude(s.Snapshot())
			}
			return nil
		}
		for _, change := range batch {
			if err := d.printer.Print(change); err != nil {
				return err
			}
		}
	}
}

// tableDisplay shows the run as a live table on a terminal.
type tableDisplay struct {
	in         io.Reader
	out        io.Writer
	interrupts chan<- os.Signal
}

// Show draws the table until the session has ended. The last state of the table stays on
// the terminal.
func (d tableDisplay) Show(s *session) error {
	model := table.New(s, func() {
		select {
		case d.interrupts <- os.Interrupt:
		default:
			// Enough interrupts are pending.
		}
	})
	model.Warn(s.warnings)
	if s.url != nil {
		model.Note("Web page", s.url)
	}
	var options []tea.ProgramOption
	// If the standard input is a manifest, bubbletea opens the terminal to read keys.
	if in, ok := d.in.(*os.File); !ok || term.IsTerminal(int(in.Fd())) {
		options = append(options, tea.WithInput(d.in))
	}
	return table.Run(model, printing.Raw(d.out), options...)
}

// newDisplay returns the display that the options select.
func (o *LocalOptions) newDisplay(s *session) display {
	if o.Output == "json" {
		return lineDisplay{output.NewJSON(printing.Raw(o.Out))}
	}
	if o.terminal {
		return tableDisplay{o.In, o.Out, o.interrupts}
	}
	var pods []string
	for _, view := range s.runner.Snapshot() {
		pods = append(pods, view.Pod.Name)
	}
	s.brief = !o.Verbose
	return lineDisplay{brief{output.NewText(o.Out, pods), o.Out, o.Verbose}}
}
