// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/text"
)

const (
	// refreshInterval is the interval at which the run is polled.
	refreshInterval = 100 * time.Millisecond
	// maxLogEntries is the number of log entries to keep.
	maxLogEntries = 500
	// minLogHeight is the minimum number of lines for the log.
	minLogHeight = 4
)

// Stage is the stage of a run.
type Stage int

// The stages of a run.
const (
	Running Stage = iota
	// Stopping means that the pods are being stopped.
	Stopping
	// Ended means that no more changes follow.
	Ended
)

// Note is an entry of the log that is not about a pod, and has no time.
type Note struct{ About, Text string }

// LiveRun is the run to show.
type LiveRun interface {
	// Take returns the changes and the notes since the last call, without waiting, and the stage after
	// these changes.
	Take() ([]local.Change, []Note, Stage)
	// Snapshot returns the current state of the pods, or their state before they were stopped.
	Snapshot() []local.PodView
}

// Model is the content of the screen.
type Model struct {
	*Screen
	run       LiveRun
	interrupt func()
	style     styles

	started, now time.Time
	rows         []row
	log          []logEntry
	pods         int
	filter       textinput.Model
	paused       bool
	stage        Stage
	// top is the index of the first visible line of the table.
	top int
}

// New returns a model of the run. It calls interrupt each time that the user quits: the first
// call stops the pods, the second kills them.
func New(run LiveRun, interrupt func()) *Model {
	filter := textinput.New()
	filter.Prompt = "/"
	m := &Model{run: run, interrupt: interrupt, style: newStyles(), filter: filter}
	m.Screen = NewScreen(m, refreshInterval)
	m.refresh()
	return m
}

// add adds an entry to the log, with safe text.
func (m *Model) add(at, about, message string) {
	m.log = append(m.log, logEntry{at, text.Line(about), text.Line(message)})
}

// Last returns the last state of the pods as lines.
func (m *Model) Last() []string {
	lines := tableLines(m.rows, m.Width, m.style)
	for i := range lines {
		lines[i] = ansi.Strip(lines[i])
	}
	return lines
}

// Poll handles the changes since the last refresh. A paused table keeps its rows.
func (m *Model) Poll(now time.Time) tea.Cmd {
	m.now = now
	if m.started.IsZero() {
		m.started = now
	}
	changes, notes, stage := m.run.Take()
	m.stage = max(m.stage, stage)
	for _, note := range notes {
		m.add("", note.About, note.Text)
	}
	for _, change := range changes {
		if change.Kind == local.KindEvent || change.Kind == local.KindLog || isCrash(change) {
			m.add(change.Time.Local().Format("15:04:05"), change.Pod, output.Describe(change))
		}
	}
	m.log = m.log[max(len(m.log)-maxLogEntries, 0):]
	if (!m.paused && len(changes) > 0) || m.stage == Ended {
		m.refresh()
	}
	if m.stage == Ended {
		return tea.Quit
	}
	return nil
}

// isCrash reports whether a change is a container that has just ended with an error.
func isCrash(change local.Change) bool {
	return change.Kind == local.KindContainer && change.Status.State.Terminated != nil && change.Status.State.Terminated.ExitCode != 0
}

// refresh updates the rows.
func (m *Model) refresh() {
	views := m.run.Snapshot()
	m.pods = len(views)
	m.rows = rowsOf(views)
}

type logEntry struct{ at, pod, text string }

// line returns the entry, truncated to the width. A long pod name is cut to leave room for
// the text.
func (e logEntry) line(width int) string {
	return ansi.Truncate(fmt.Sprintf("%-8s %s  %s", e.at, ansi.Truncate(e.pod, max(width/3, 8), "…"), e.text), width, "…")
}

// Key handles a key.
func (m *Model) Key(key tea.KeyPressMsg) tea.Cmd {
	if name := key.String(); name == "ctrl+c" || (name == "q" && !m.filter.Focused()) {
		m.stage = max(m.stage, Stopping)
		m.interrupt()
		return nil
	}
	if m.filter.Focused() {
		return m.handleFilterKey(key)
	}
	switch key.String() {
	case "/":
		return m.filter.Focus()
	case "esc":
		m.filter.Reset()
	case "p":
		if m.paused = !m.paused; !m.paused {
			m.refresh()
		}
	default:
		m.top = Scroll(key.String(), m.top, m.Height/2)
	}
	return nil
}

// handleFilterKey handles a key while the filter is being edited.
func (m *Model) handleFilterKey(key tea.KeyPressMsg) tea.Cmd {
	switch key.String() {
	case "enter":
		m.filter.Blur()
		return nil
	case "esc":
		m.filter.Reset()
		m.filter.Blur()
		return nil
	}
	var cmd tea.Cmd
	m.filter, cmd = m.filter.Update(key)
	m.top = 0
	return cmd
}

// Body returns a title, the table and the log.
func (m *Model) Body() []string {
	text := m.filter.Value()
	table := tableLines(filterRows(m.rows, text), m.Width, m.style)
	head, body := table[0], table[1:]

	// The title, the header, the line above the log and the status need four lines.
	space := max(m.Height-4, 2)
	shown := min(len(body), max(space-minLogHeight, 1))
	m.top = max(min(m.top, len(body)-shown), 0)
	lines := append([]string{m.title(), head}, body[m.top:m.top+shown]...)
	lines = append(lines, m.style.title.Render(cell("EVENTS", m.Width)))

	var log []string
	for _, e := range m.log {
		if text == "" || contains(e.at+" "+e.pod+"  "+e.text, text) {
			log = append(log, e.line(m.Width))
		}
	}
	return append(lines, log[max(len(log)-(space-shown), 0):]...)
}

// title returns the first line: the number of pods, the duration and the stage of the run.
func (m *Model) title() string {
	pods := "pods"
	if m.pods == 1 {
		pods = "pod"
	}
	parts := []string{fmt.Sprintf("seamark local  %d %s  %s", m.pods, pods, m.now.Sub(m.started).Round(time.Second))}
	if m.paused {
		parts = append(parts, "PAUSED")
	}
	if m.stage == Stopping {
		parts = append(parts, "STOPPING, press q again to kill")
	}
	return m.style.status.Render(cell(strings.Join(parts, "  "), m.Width))
}

// Status returns the filter that is being edited, or the keys and their meaning.
func (m *Model) Status() string {
	if m.filter.Focused() {
		return m.filter.View()
	}
	text := "/ filter  p pause  ↑↓ scroll  q quit"
	if value := m.filter.Value(); value != "" {
		text = "filter: " + value + "  (esc clears)  " + text
	}
	return Faint(text)
}
