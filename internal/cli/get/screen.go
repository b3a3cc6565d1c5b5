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
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// refreshInterval is the time between updates of the screen.
	refreshInterval = 250 * time.Millisecond
	// defaultWidth and defaultHeight are the size of a terminal that does not report its size.
	defaultWidth, defaultHeight = 80, 24
)

// screen shows the current rows on a terminal. It implements tea.Model.
type screen struct {
	o       *Options
	source  watched
	notices <-chan string

	width, height int
	rows          []probestate.Row
	// top is the index of the first visible row.
	top int
	// notice is the last one, and warnings are those of the last update.
	notice   string
	warnings []string
	err      error
}

// show shows the table until the context is canceled or the user quits. The last table stays on the
// terminal.
func (o *Options) show(ctx context.Context, w watched, notices <-chan string) error {
	s := newScreen(o, w, notices)
	// Without a terminal as input there are no keys. Ctrl-C is a signal then.
	options := []tea.ProgramOption{tea.WithOutput(printing.Raw(o.Out)), tea.WithoutSignalHandler(), tea.WithInput(nil)}
	if in, isFile := o.In.(*os.File); isFile && printing.IsTerminal(in) {
		options = append(options, tea.WithInput(in))
	}
	program := tea.NewProgram(s, options...)
	defer context.AfterFunc(ctx, program.Quit)()
	if _, err := program.Run(); err != nil {
		return exit.Failure(fmt.Errorf("show table: %w", err))
	}
	for _, line := range s.table(printing.HasColors(o.Out, os.Getenv)) {
		fmt.Fprintln(printing.Raw(o.Out), line)
	}
	if hidden := s.hidden(); hidden > 0 {
		fmt.Fprintf(o.Out, "%d more\n", hidden)
	}
	return exit.Failure(s.err)
}

func newScreen(o *Options, w watched, notices <-chan string) *screen {
	s := &screen{o: o, source: w, notices: notices, width: defaultWidth, height: defaultHeight}
	s.poll()
	return s
}

// tick is a refresh of the screen.
type tick struct{}

func nextTick() tea.Cmd {
	return tea.Tick(refreshInterval, func(time.Time) tea.Msg { return tick{} })
}

// Init starts the refreshes.
func (s *screen) Init() tea.Cmd { return nextTick() }

// Update handles a key, a new size of the terminal, or a tick.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			s.width, s.height = msg.Width, msg.Height
		}
	case tea.KeyPressMsg:
		if name := msg.String(); name == "q" || name == "ctrl+c" {
			return s, tea.Quit
		}
		s.top = table.Scroll(msg.String(), s.top, s.room())
	case tick:
		s.poll()
		return s, nextTick()
	}
	return s, nil
}

// poll takes the changes and the last notice.
func (s *screen) poll() {
	for range maxNotices {
		select {
		case line := <-s.notices:
			s.notice = s.o.now().Format(time.TimeOnly) + " " + line
		default:
		}
	}
	select {
	case <-s.source.Changed():
		_, states := s.source.Update()
		s.rows = s.o.filter(s.source.Rows())
		s.warnings = warnings(states)
	default:
	}
}

// room is the number of rows that the terminal has lines for, besides the header and the status.
func (s *screen) room() int {
	if s.o.Output.NoHeaders {
		return max(s.height-1, 1)
	}
	return max(s.height-2, 1)
}

// hidden returns the number of rows that are not visible.
func (s *screen) hidden() int { return max(len(s.rows)-s.room(), 0) }

// View draws the screen.
func (s *screen) View() tea.View {
	view := tea.NewView(strings.Join(s.lines(), "\n"))
	view.AltScreen = true
	return view
}

// lines returns the lines of the screen: the table, and the status in the last line.
func (s *screen) lines() []string {
	lines := s.table(true)
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	status := lipgloss.NewStyle().Faint(true).Render(s.status())
	return append(lines[:max(min(len(lines), s.height-1), 0)], ansi.Truncate(status, s.width, "…"))
}

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

// status returns the last line: the number of rows, the keys, and notices and warnings.
func (s *screen) status() string {
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
	return strings.Join(parts, "  ")
}
