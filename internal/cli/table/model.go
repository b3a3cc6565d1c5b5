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
)

const (
	// refresh is how often the run is looked at.
	refresh = 100 * time.Millisecond
	// keptLog is how many lines of the log are kept.
	keptLog = 500
	// leastLog is how many lines of the screen the log has at least.
	leastLog = 4
	// narrow and low are the size of a terminal that has not told its own.
	narrow, low = 80, 24
)

// Stage is how far a run has come.
type Stage int

// The stages of a run.
const (
	Running Stage = iota
	// Stopping is while its pods are stopped.
	Stopping
	// Ended is when no more changes come.
	Ended
)

// Source is the run that is shown.
type Source interface {
	// Take returns what has changed since the last call, without waiting, and the stage
	// after that.
	Take() ([]local.Change, Stage)
	// Snapshot returns the pods as they stand, or stood before they were stopped.
	Snapshot() []local.PodView
}

// Model is the state of the view. It implements tea.Model.
type Model struct {
	source    Source
	interrupt func()
	paint     painter

	width, height int
	started, now  time.Time
	rows          []row
	log           []entry
	pods          int
	input         textinput.Model
	paused        bool
	stage         Stage
	// top is the first line of the table that is shown.
	top int
}

// New returns a view of the source. It calls interrupt for each time that the user asks
// for the end: first to stop the pods, then to kill them.
func New(source Source, interrupt func()) *Model {
	input := textinput.New()
	input.Prompt = "/"
	m := &Model{source: source, interrupt: interrupt, paint: newPainter(), input: input, width: narrow, height: low}
	m.look()
	return m
}

// Run shows the source until it has ended, and then prints how the pods stood. Options are
// those of bubbletea, such as another input than the terminal's.
func Run(m *Model, out io.Writer, options ...tea.ProgramOption) error {
	options = append([]tea.ProgramOption{tea.WithOutput(out), tea.WithoutSignalHandler()}, options...)
	if _, err := tea.NewProgram(m, options...).Run(); err != nil {
		return fmt.Errorf("show the table: %w", err)
	}
	for _, line := range tableLines(m.rows, m.width, m.paint) {
		fmt.Fprintln(out, ansi.Strip(line))
	}
	return nil
}

// tick is the time at which the run is looked at again.
type tick time.Time

func next() tea.Cmd {
	return tea.Tick(refresh, func(now time.Time) tea.Msg { return tick(now) })
}

// Init begins to follow the run.
func (m *Model) Init() tea.Cmd { return next() }

// Update takes in a key, a new size or the passing of time.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 1), max(msg.Height, 1)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tick:
		m.now = time.Time(msg)
		if m.started.IsZero() {
			m.started = m.now
		}
		if m.follow(); m.stage == Ended {
			return m, tea.Quit
		}
		return m, next()
	}
	return m, nil
}

// follow takes in what has happened. A table that is paused keeps what it shows.
func (m *Model) follow() {
	changes, stage := m.source.Take()
	m.stage = max(m.stage, stage)
	for _, change := range changes {
		if change.Kind == local.KindEvent || change.Kind == local.KindLog {
			m.log = append(m.log, entry{change.Time.Local().Format("15:04:05"), change.Pod, output.Describe(change)})
		}
	}
	m.log = m.log[max(len(m.log)-keptLog, 0):]
	if (!m.paused && len(changes) > 0) || m.stage == Ended {
		m.look()
	}
}

// look takes in how the pods stand.
func (m *Model) look() {
	views := m.source.Snapshot()
	m.pods = len(views)
	m.rows = rowsOf(views)
}

// entry is one line of the log.
type entry struct{ at, pod, text string }

// line returns the entry within the width. A long pod name is cut first, so that there is
// room for what happened.
func (e entry) line(width int) string {
	return ansi.Truncate(fmt.Sprintf("%s %s  %s", e.at, ansi.Truncate(e.pod, max(width/3, 8), "…"), e.text), width, "…")
}

// key does what the key asks for.
func (m *Model) key(key tea.KeyPressMsg) tea.Cmd {
	if name := key.String(); name == "ctrl+c" || (name == "q" && !m.input.Focused()) {
		m.stage = max(m.stage, Stopping)
		m.interrupt()
		return nil
	}
	if m.input.Focused() {
		return m.typed(key)
	}
	switch key.String() {
	case "/":
		return m.input.Focus()
	case "esc":
		m.input.Reset()
	case "p":
		if m.paused = !m.paused; !m.paused {
			m.look()
		}
	case "up", "k":
		m.top--
	case "down", "j":
		m.top++
	case "pgup":
		m.top -= m.height / 2
	case "pgdown", "space":
		m.top += m.height / 2
	case "home", "g":
		m.top = 0
	}
	m.top = max(m.top, 0)
	return nil
}

// typed takes in a key of the filter that is being written.
func (m *Model) typed(key tea.KeyPressMsg) tea.Cmd {
	switch key.String() {
	case "enter":
		m.input.Blur()
		return nil
	case "esc":
		m.input.Reset()
		m.input.Blur()
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(key)
	m.top = 0
	return cmd
}

// View draws the screen: a title, the table, the log and the keys.
func (m *Model) View() tea.View {
	view := tea.NewView(strings.Join(m.lines(), "\n"))
	view.AltScreen = true
	return view
}

// lines are those of the screen, as many as it is high.
func (m *Model) lines() []string {
	text := m.input.Value()
	table := tableLines(filter(m.rows, text), m.width, m.paint)
	head, body := table[0], table[1:]

	// The title, the header, the line above the log and the keys take four.
	space := max(m.height-4, 2)
	shown := min(len(body), max(space-leastLog, 1))
	m.top = max(min(m.top, len(body)-shown), 0)
	lines := append([]string{m.title(), head}, body[m.top:m.top+shown]...)
	lines = append(lines, m.paint.title.Render(cell("EVENTS", m.width)))

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

// title says what is shown, and how.
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
		parts = append(parts, "STOPPING, once more to kill")
	}
	return m.paint.status.Render(cell(strings.Join(parts, "  "), m.width))
}

// keys is the last line: the filter, or what the keys do.
func (m *Model) keys() string {
	if m.input.Focused() {
		return m.input.View()
	}
	text := "/ filter  p pause  ↑↓ scroll  q quit"
	if value := m.input.Value(); value != "" {
		text = "filter: " + value + "  (esc clears)  " + text
	}
	return m.paint.faint.Render(ansi.Truncate(text, m.width, "…"))
}
