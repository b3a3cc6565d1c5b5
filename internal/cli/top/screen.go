// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/program/text"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/internal/web/model"
)

// interval is the time between updates of the table.
const interval = 500 * time.Millisecond

// screen shows the worst groups and the sets on a terminal, and what commands print about the selected one.
type screen struct {
	*table.Screen
	ctx     context.Context //nolint:containedctx // tea.Model has no other way to end commands
	o       *Options
	source  live.Source
	current func() []model.Set
	notices live.Notices
	// run returns what a command prints, and logs the output of the container of a row.
	run  func(ctx context.Context, namespace string, args ...string) string
	logs func(ctx context.Context, row *probestatus.Row) string

	events []history.Event
	groups []history.Group
	sets   []model.Set
	// more and moreSets are the numbers of groups and sets that are left out. Those of sets follow groups in selected.
	more, moreSets, selected int
	notice                   string
	// page is what a command has printed, or nil for the table.
	page *page
}

// page is the output of a command.
type page struct {
	title string
	lines []string
	// top is the index of the first visible line.
	top int
}

func newScreen(ctx context.Context, o *Options, source live.Source, events []history.Event, sets func() []model.Set) *screen {
	s := &screen{ctx: ctx, o: o, source: source, events: events, current: sets}
	s.Screen = table.NewScreen(s, interval)
	s.source.Update()
	s.update()
	return s
}

// Key handles a key.
func (s *screen) Key(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	switch {
	case table.Ends(key):
		return tea.Quit
	case s.page != nil && (name == "esc" || name == "backspace" || name == "left"):
		s.page = nil
	case s.page != nil:
		s.page.top = min(table.Scroll(name, s.page.top, s.room()), max(len(s.page.lines)-s.room(), 0))
	case len(s.groups)+len(s.sets) > 0:
		s.selected = min(table.Scroll(name, s.selected, s.room()), len(s.groups)+len(s.sets)-1)
		if set := s.selectedSet(); set != nil && name == "e" {
			return s.openCommand(set.Namespace, "explain", nameOf(set))
		} else if set == nil && s.groups[s.selected].Row != nil {
			return s.open(name, s.groups[s.selected].Row)
		}
	}
	return nil
}

// selectedSet returns the selected set, or nil if a group is selected, or nothing.
func (s *screen) selectedSet() *model.Set {
	if i := s.selected - len(s.groups); i >= 0 && i < len(s.sets) {
		return &s.sets[i]
	}
	return nil
}

// open runs the command of a key for the worst probe of the selected group.
func (s *screen) open(name string, row *probestatus.Row) tea.Cmd {
	var args []string
	switch name {
	case "e":
		args = []string{"explain", row.Pod}
	case "t":
		args = []string{"timeline", row.Pod}
	case "x", "r":
		args = []string{"test", "--marker=" + identity.ID{Marker: row.Marker, Probe: row.Probe}.String(), "pod/" + row.Pod}
	case "l":
		return s.openPage("logs of "+row.Pod+" "+row.Container, func() string { return s.logs(s.ctx, row) })
	default:
		return nil
	}
	return s.openCommand(row.Namespace, args...)
}

// openCommand shows what a command about an object in the namespace prints.
func (s *screen) openCommand(namespace string, args ...string) tea.Cmd {
	return s.openPage(strings.Join(args, " "), func() string { return s.run(s.ctx, namespace, args...) })
}

// openPage shows a page with the text, once the command has returned it.
func (s *screen) openPage(title string, command func() string) tea.Cmd {
	page := &page{title: title, lines: []string{"..."}}
	s.page = page
	return func() tea.Msg {
		output := linesOf(command())
		// The user may have left the page. It is not shown again.
		return table.Apply(func() { page.lines = output })
	}
}

// Poll takes the changes and the next notice.
func (s *screen) Poll(time.Time) tea.Cmd {
	select {
	case s.notice = <-s.notices:
	default:
	}
	select {
	case <-s.source.Changed():
		changes, _ := s.source.Update()
		s.events = append(s.events, eventsOf(changes)...)
	default:
	}
	s.update()
	return nil
}

// update computes the groups and the sets. The selection stays on its group or set.
func (s *screen) update() {
	now := s.o.Now()
	s.events = slices.DeleteFunc(s.events, func(e history.Event) bool { return e.Last.Before(now.Add(-s.o.Window)) })
	var before history.Group
	set := s.selectedSet()
	if s.selected < len(s.groups) {
		before = s.groups[s.selected]
	}
	s.sets, s.moreSets = s.o.firstSets(s.current())
	groups := history.Top(s.source.Rows(), s.events, now, s.o.Window)
	s.more = max(len(groups)-s.o.Rows, 0)
	s.groups = groups[:len(groups)-s.more]
	same := func(g history.Group) bool {
		return g.Namespace == before.Namespace && g.Marker == before.Marker && g.Node == before.Node
	}
	if i := slices.IndexFunc(s.groups, same); i >= 0 {
		s.selected = i
	} else if i := slices.IndexFunc(s.sets, func(other model.Set) bool { return set != nil && set.SetID == other.SetID }); i >= 0 {
		s.selected = len(s.groups) + i
	}
	s.selected = max(min(s.selected, len(s.groups)+len(s.sets)-1), 0)
}

// room is the number of lines between the first line and the help.
func (s *screen) room() int { return max(s.Height-2, 1) }

// Body returns the page or the table.
func (s *screen) Body() []string {
	if s.page != nil {
		return append([]string{text.Line(s.page.title)}, visible(s.page.lines, s.page.top, s.room())...)
	}
	return s.tableLines()
}

// tableLines returns the header of the table of the selected row, and the rows around it.
func (s *screen) tableLines() []string {
	lines, plain := groupLines(s.groups, s.more, true), groupLines(s.groups, s.more, false)
	header, at := 0, s.selected+1
	if s.selectedSet() != nil {
		header = len(lines) + 1
		at = header + 1 + s.selected - len(s.groups)
	}
	lines, plain = append(lines, setLines(s.sets, s.moreSets, true)...), append(plain, setLines(s.sets, s.moreSets, false)...)
	if at >= len(lines) {
		return lines // There is no row.
	}
	// A color would end the reverse.
	lines[at] = lipgloss.NewStyle().Reverse(true).Render(plain[at])
	first := lines[0]
	if header <= at-s.room() {
		first = lines[header] // It is not visible.
	}
	return append([]string{first}, visible(lines[1:], at-s.room(), s.room())...)
}

// Status returns the keys and their meaning, and the last notice.
func (s *screen) Status() string {
	help := "↑↓ select  e explain  t timeline  l logs  x test  q quit"
	if s.selectedSet() != nil {
		help = "↑↓ select  e explain  q quit"
	}
	if s.page != nil {
		help = fmt.Sprintf("%d lines  ↑↓ scroll  esc back  q quit", len(s.page.lines))
	}
	if s.notice != "" {
		help += "  " + text.Line(s.notice)
	}
	return table.Faint(help)
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
