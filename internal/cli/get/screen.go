// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// refreshInterval is the time between updates of the screen.
const refreshInterval = 250 * time.Millisecond

// screen shows the current rows on a terminal.
type screen struct {
	*table.Screen
	o       *options
	source  live.Source
	notices live.Notices
	rows    []probestatus.Row
	// top is the index of the first visible row.
	top int
	// notice is the last one, and warnings are those of the last update.
	notice   string
	warnings []string
	err      error
}

// show shows the table until the context is canceled or the user quits. The last table stays on the
// terminal.
func (o *options) show(ctx context.Context, w live.Source, notices live.Notices) error {
	s := newScreen(o, w, notices)
	if err := s.Show(ctx, o.IOStreams, tea.WithInput(nil)); err != nil {
		return exit.Failure(err)
	}
	for _, line := range s.table(printing.HasColors(o.Out, os.Getenv)) {
		fmt.Fprintln(printing.Raw(o.Out), line)
	}
	if hidden := s.hidden(); hidden > 0 {
		fmt.Fprintf(o.Out, "%d more\n", hidden)
	}
	return exit.Failure(s.err)
}

func newScreen(o *options, w live.Source, notices live.Notices) *screen {
	s := &screen{o: o, source: w, notices: notices}
	s.Screen = table.NewScreen(s, refreshInterval)
	s.Poll(o.now())
	return s
}

// Key handles a key.
func (s *screen) Key(key tea.KeyPressMsg) tea.Cmd {
	if table.Ends(key) {
		return tea.Quit
	}
	s.top = table.Scroll(key.String(), s.top, s.room())
	return nil
}

// Poll takes the changes and the next notice.
func (s *screen) Poll(time.Time) tea.Cmd {
	select {
	case line := <-s.notices:
		s.notice = s.o.now().Format(time.TimeOnly) + " " + line
	default:
	}
	select {
	case <-s.source.Changed():
		_, current := s.source.Update()
		s.rows = s.o.filter(s.source.Rows())
		s.warnings = warnings(current)
	default:
	}
	return nil
}

// room is the number of rows that the terminal has lines for, besides the header and the status.
func (s *screen) room() int {
	if s.o.Output.NoHeaders {
		return max(s.Height-1, 1)
	}
	return max(s.Height-2, 1)
}

// hidden returns the number of rows that are not visible.
func (s *screen) hidden() int { return max(len(s.rows)-s.room(), 0) }

// Body returns the table.
func (s *screen) Body() []string { return s.table(true) }

// table returns the header and the visible rows.
func (s *screen) table(colors bool) []string {
	if len(s.rows) == 0 {
		return nil
	}
	s.top = min(s.top, s.hidden())
	visible := s.rows[s.top:min(s.top+s.room(), len(s.rows))]
	lines, err := s.o.Output.Lines(result(visible, s.o.Cluster.AllNamespaces, s.o.now()), colors)
	if err != nil {
		s.err = err
	}
	return lines
}

// Status returns the number of rows, the keys, and notices and warnings.
func (s *screen) Status() string {
	count := fmt.Sprintf("%d probes", len(s.rows))
	if len(s.rows) == 1 {
		count = "1 probe"
	}
	parts := []string{count}
	if hidden := s.hidden(); hidden > 0 {
		parts = []string{fmt.Sprintf("%s, %d hidden", count, hidden), "↑↓ scroll"}
	}
	parts = append(parts, "q quit")
	if s.notice != "" {
		parts = append(parts, text.Line(s.notice))
	}
	for _, warning := range s.warnings {
		parts = append(parts, text.Line(warning))
	}
	return table.Faint(strings.Join(parts, "  "))
}
