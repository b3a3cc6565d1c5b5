// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/history"
)

// topInterval is the time between updates of the table.
const topInterval = 500 * time.Millisecond

// topSource has the rows of a watch: see live.Watch.
type topSource interface {
	Changed() <-chan struct{}
	Update() ([]live.Change, probestate.States)
	Rows() []probestate.Row
}

// topScreen shows the worst groups on a terminal, and what commands print about the selected one. It
// implements tea.Model.
type topScreen struct {
	ctx     context.Context //nolint:containedctx // tea.Model has no other way to end commands
	o       *TopOptions
	source  topSource
	notices <-chan string
	// run returns what a command prints, and logs the output of the container of a row.
	run  func(ctx context.Context, namespace string, args ...string) string
	logs func(ctx context.Context, row *probestate.Row) string

	width, height int
	events        []history.Event
	groups        []history.Group
	// more is the number of groups that are left out.
	more, selected int
	notice         string
	// page is what a command has printed, or nil for the table.
	page *topPage
}

// topPage is the output of a command.
type topPage struct {
	title string
	lines []string
	// top is the index of the first visible line.
	top int
}

// topTick is an update of the table, and topOutput the output of a command that has ended.
type (
	topTick   struct{}
	topOutput struct {
		page *topPage
		text string
	}
)

func newTopScreen(ctx context.Context, o *TopOptions, source topSource, events []history.Event) *topScreen {
	s := &topScreen{ctx: ctx, o: o, source: source, events: events, width: 80, height: 24}
	s.source.Update()
	s.update()
	return s
}

// Init starts the updates.
func (s *topScreen) Init() tea.Cmd { return nextTopTick() }

func nextTopTick() tea.Cmd {
	return tea.Tick(topInterval, func(time.Time) tea.Msg { return topTick{} })
}

// Update handles a key, a new size of the terminal, an update of the table, or the output of a command.
func (s *topScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			s.width, s.height = msg.Width, msg.Height
		}
	case tea.KeyPressMsg:
		return s, s.key(msg.String())
	case topTick:
		s.poll()
		return s, nextTopTick()
	case topOutput:
		// The user may have left the page.
		if msg.page == s.page {
			s.page.lines = linesOf(msg.text)
		}
	}
	return s, nil
}

func (s *topScreen) key(name string) tea.Cmd {
	switch {
	case name == "q" || name == "ctrl+c":
		return tea.Quit
	case s.page != nil && (name == "esc" || name == "backspace" || name == "left"):
		s.page = nil
	case s.page != nil:
		s.page.top = min(table.Scroll(name, s.page.top, s.room()), max(len(s.page.lines)-s.room(), 0))
	case len(s.groups) > 0:
		s.selected = min(table.Scroll(name, s.selected, s.room()), len(s.groups)-1)
		return s.open(name)
	}
	return nil
}

// open runs the command of a key for the worst probe of the selected group.
func (s *topScreen) open(name string) tea.Cmd {
	row := s.groups[s.selected].Row
	if row == nil {
		return nil
	}
	id := probeid.ID{Marker: row.Marker, Probe: row.Probe}.String()
	var args []string
	switch name {
	case "e":
		args = []string{"explain", row.Pod}
	case "t":
		args = []string{"timeline", row.Pod}
	case "x", "r":
		args = []string{"test", "--marker=" + id, "pod/" + row.Pod}
	case "l":
		page := &topPage{title: "logs of " + row.Pod + " " + row.Container, lines: []string{"..."}}
		s.page = page
		return func() tea.Msg { return topOutput{page, s.logs(s.ctx, row)} }
	default:
		return nil
	}
	page := &topPage{title: strings.Join(args, " "), lines: []string{"..."}}
	s.page = page
	return func() tea.Msg { return topOutput{page, s.run(s.ctx, row.Namespace, args...)} }
}

// poll takes the changes and the last notice.
func (s *topScreen) poll() {
	for range maxNotices {
		select {
		case line := <-s.notices:
			s.notice = line
		default:
		}
	}
	select {
	case <-s.source.Changed():
		changes, _ := s.source.Update()
		s.events = append(s.events, eventsOf(changes)...)
	default:
	}
	s.update()
}

// update computes the groups. The selection stays on its group.
func (s *topScreen) update() {
	now := s.o.Now()
	s.events = since(s.events, now.Add(-s.o.Window))
	var before history.Group
	if s.selected < len(s.groups) {
		before = s.groups[s.selected]
	}
	groups := history.Top(s.source.Rows(), s.events, now, s.o.Window)
	s.more = max(len(groups)-s.o.Rows, 0)
	s.groups = groups[:len(groups)-s.more]
	same := func(g history.Group) bool {
		return g.Namespace == before.Namespace && g.Marker == before.Marker && g.Node == before.Node
	}
	if i := slices.IndexFunc(s.groups, same); i >= 0 {
		s.selected = i
	}
	s.selected = max(min(s.selected, len(s.groups)-1), 0)
}

// room is the number of lines between the first line and the help.
func (s *topScreen) room() int { return max(s.height-2, 1) }

// View draws the screen.
func (s *topScreen) View() tea.View {
	view := tea.NewView(strings.Join(s.lines(), "\n"))
	view.AltScreen = true
	return view
}

// lines returns the lines of the screen. The last one is the help.
func (s *topScreen) lines() []string {
	lines := s.tableLines()
	if s.page != nil {
		lines = append([]string{text.Line(s.page.title)}, visible(s.page.lines, s.page.top, s.room())...)
	}
	lines = lines[:min(len(lines), s.height-1)]
	for len(lines) < s.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, lipgloss.NewStyle().Faint(true).Render(s.help()))
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.width, "…")
	}
	return lines
}

// tableLines returns the header and the groups around the selected one.
func (s *topScreen) tableLines() []string {
	var out bytes.Buffer
	// A buffer accepts everything.
	_ = printTop(&out, s.groups, s.more)
	lines := linesOf(out.String())
	if len(s.groups) == 0 {
		return lines
	}
	lines[s.selected+1] = lipgloss.NewStyle().Reverse(true).Render(lines[s.selected+1])
	return append(lines[:1], visible(slices.Clone(lines[1:]), s.selected-s.room()+1, s.room())...)
}

func (s *topScreen) help() string {
	help := "↑↓ select  e explain  t timeline  l logs  x test  q quit"
	if s.page != nil {
		help = fmt.Sprintf("%d lines  ↑↓ scroll  esc back  q quit", len(s.page.lines))
	}
	if s.notice != "" {
		help += "  " + text.Line(s.notice)
	}
	return help
}

// visible returns at most room lines from the index top.
func visible(lines []string, top, room int) []string {
	top = max(min(top, len(lines)-room), 0)
	return lines[top:min(top+room, len(lines))]
}

// linesOf returns the lines of a text that comes from commands and containers, safe for a terminal.
func linesOf(output string) []string {
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for i, line := range lines {
		lines[i] = text.Safe(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    "))
	}
	return lines
}
