// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"io"
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
	// defaultWidth and defaultHeight are the size of a terminal that does not report its size.
	defaultWidth, defaultHeight = 80, 24
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

// LiveRun is the run to show.
type LiveRun interface {
	// Take returns the changes since the last call, without waiting, and the stage after
	// these changes.
	Take() ([]local.Change, Stage)
	// Snapshot returns the current state of the pods, or their state before they were stopped.
	Snapshot() []local.PodView
}

// Model is the state of the screen. It implements tea.Model.
type Model struct {
	run       LiveRun
	interrupt func()
	style     styles

	width, height int
	started, now  time.Time
	rows          []row
	log           []logEntry
	// note returns the text of the entry noted, or is nil.
	note   func() string
	noted  logEntry
	pods   int
	filter textinput.Model
	paused bool
	stage  Stage
	// top is the index of the first visible line of the table.
	top int
}

// New returns a model of the run. It calls interrupt each time that the user quits: the first
// call stops the pods, the second kills them.
func New(run LiveRun, interrupt func()) *Model {
	filter := textinput.New()
	filter.Prompt = "/"
	m := &Model{run: run, interrupt: interrupt, style: newStyles(), filter: filter, width: defaultWidth, height: defaultHeight}
	m.refresh()
	return m
}

// Warn adds warnings to the log, as entries without a time.
func (m *Model) Warn(warnings []string) {
	for _, warning := range warnings {
		for line := range strings.Lines(warning) {
			m.add("", "Warning", line)
		}
	}
}

// Note adds an entry to the log that is not about a pod, and has no time. It adds another one
// whenever message returns another value.
func (m *Model) Note(about string, message func() string) {
	m.note, m.noted = message, logEntry{pod: about}
	m.takeNote()
}

func (m *Model) takeNote() {
	if m.note == nil {
		return
	}
	if message := m.note(); message != m.noted.text {
		m.noted.text = message
		m.add("", m.noted.pod, message)
	}
}

// add adds an entry to the log, with safe text.
func (m *Model) add(at, about, message string) {
	m.log = append(m.log, logEntry{at, text.Line(about), text.Line(message)})
}

// Run shows the run until it has ended, and then prints the last state of the pods. The
// options are those of bubbletea, such as the input.
func Run(m *Model, out io.Writer, options ...tea.ProgramOption) error {
	options = append([]tea.ProgramOption{tea.WithOutput(out), tea.WithoutSignalHandler()}, options...)
	if _, err := tea.NewProgram(m, options...).Run(); err != nil {
		return fmt.Errorf("show table: %w", err)
	}
	for _, line := range tableLines(m.rows, m.width, m.style) {
		fmt.Fprintln(out, ansi.Strip(line))
	}
	return nil
}

// tick is the time of the next refresh.
type tick time.Time

func nextTick() tea.Cmd {
	return tea.Tick(refreshInterval, func(now time.Time) tea.Msg { return tick(now) })
}

// Init starts the refreshes.
func (m *Model) Init() tea.Cmd { return nextTick() }

// Update handles a key, a new size of the terminal, or a tick.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
	case tea.KeyPressMsg:
		return m, m.handleKey(msg)
	case tick:
		m.now = time.Time(msg)
		if m.started.IsZero() {
			m.started = m.now
		}
		if m.poll(); m.stage == Ended {
			return m, tea.Quit
		}
		return m, nextTick()
	}
	return m, nil
}

// poll handles the changes since the last tick. A paused table keeps its rows.
func (m *Model) poll() {
	changes, stage := m.run.Take()
	m.stage = max(m.stage, stage)
	m.takeNote()
	for _, change := range changes {
		if change.Kind == local.KindEvent || change.Kind == local.KindLog || isCrash(change) {
			m.add(change.Time.Local().Format("15:04:05"), change.Pod, output.Describe(change))
		}
	}
	m.log = m.log[max(len(m.log)-maxLogEntries, 0):]
	if (!m.paused && len(changes) > 0) || m.stage == Ended {
		m.refresh()
	}
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

// logEntry is one line of the log.
type logEntry struct{ at, pod, text string }

// line returns the entry, truncated to the width. A long pod name is cut to leave room for
// the text.
func (e logEntry) line(width int) string {
	return ansi.Truncate(fmt.Sprintf("%-8s %s  %s", e.at, ansi.Truncate(e.pod, max(width/3, 8), "…"), e.text), width, "…")
}

// handleKey handles a key.
func (m *Model) handleKey(key tea.KeyPressMsg) tea.Cmd {
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
		m.top = Scroll(key.String(), m.top, m.height/2)
	}
	return nil
}

// Scroll returns the index of the first visible line after a key. A page is the number of lines
// that some keys move.
func Scroll(key string, top, page int) int {
	switch key {
	case "up", "k":
		top--
	case "down", "j":
		top++
	case "pgup":
		top -= page
	case "pgdown", "space":
		top += page
	case "home", "g":
		top = 0
	}
	return max(top, 0)
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

// View draws the screen: a title, the table, the log and the keys.
func (m *Model) View() tea.View {
	view := tea.NewView(strings.Join(m.lines(), "\n"))
	view.AltScreen = true
	return view
}

// lines returns the lines of the screen. Their number is the height of the screen.
func (m *Model) lines() []string {
	text := m.filter.Value()
	table := tableLines(filterRows(m.rows, text), m.width, m.style)
	head, body := table[0], table[1:]

	// The title, the header, the line above the log and the keys need four lines.
	space := max(m.height-4, 2)
	shown := min(len(body), max(space-minLogHeight, 1))
	m.top = max(min(m.top, len(body)-shown), 0)
	lines := append([]string{m.title(), head}, body[m.top:m.top+shown]...)
	lines = append(lines, m.style.title.Render(cell("EVENTS", m.width)))

	var log []string
	for _, e := range m.log {
		if text == "" || contains(e.at+" "+e.pod+"  "+e.text, text) {
			log = append(log, e.line(m.width))
		}
	}
	room := space - shown
	log = log[max(len(log)-room, 0):]
	lines = append(lines, log...)
	for range room - len(log) {
		lines = append(lines, "")
	}
	return append(lines, m.keys())
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
	return m.style.status.Render(cell(strings.Join(parts, "  "), m.width))
}

// keys returns the last line: the filter, or the keys and their meaning.
func (m *Model) keys() string {
	if m.filter.Focused() {
		return m.filter.View()
	}
	text := "/ filter  p pause  ↑↓ scroll  q quit"
	if value := m.filter.Value(); value != "" {
		text = "filter: " + value + "  (esc clears)  " + text
	}
	return m.style.faint.Render(ansi.Truncate(text, m.width, "…"))
}
