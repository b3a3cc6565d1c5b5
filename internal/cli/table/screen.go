// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/internal/cli/printing"
)

// Screen is what all screens of the program have in common: they fill the terminal, are refreshed at an
// interval, and have keys. It implements tea.Model.
type Screen struct {
	// Width and Height are the size of the terminal. NewScreen sets that of a terminal that does not
	// report its size.
	Width, Height int
	interval      time.Duration
	content       Content
}

// Content is what a Screen shows.
type Content interface {
	// Poll updates the content. Its command is run if it is not nil.
	Poll(now time.Time) tea.Cmd
	// Key handles a key. Its command is run if it is not nil.
	Key(key tea.KeyPressMsg) tea.Cmd
	// Body returns the lines of the screen. Those that do not fit are cut.
	Body() []string
	// Status returns the last line of the screen.
	Status() string
}

// NewScreen returns a screen that polls its content at the interval.
func NewScreen(content Content, interval time.Duration) *Screen {
	return &Screen{Width: 80, Height: 24, interval: interval, content: content}
}

// Tick is the time of a refresh.
type Tick time.Time

// Apply is the effect of a command that has ended.
type Apply func()

func (s *Screen) nextTick() tea.Cmd {
	return tea.Tick(s.interval, func(now time.Time) tea.Msg { return Tick(now) })
}

// Init starts the refreshes.
func (s *Screen) Init() tea.Cmd { return s.nextTick() }

// Update handles a key, a new size of the terminal, a refresh, or the effect of a command.
func (s *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			s.Width, s.Height = msg.Width, msg.Height
		}
	case tea.KeyPressMsg:
		return s, s.content.Key(msg)
	case Tick:
		if command := s.content.Poll(time.Time(msg)); command != nil {
			return s, command
		}
		return s, s.nextTick()
	case Apply:
		msg()
	}
	return s, nil
}

// View draws the screen.
func (s *Screen) View() tea.View {
	view := tea.NewView(strings.Join(s.Lines(), "\n"))
	view.AltScreen = true
	return view
}

// Lines returns the lines of the screen. Their number is the height of the terminal.
func (s *Screen) Lines() []string {
	lines := make([]string, s.Height)
	copy(lines, s.content.Body())
	lines[s.Height-1] = s.content.Status()
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], s.Width, "…")
	}
	return lines
}

// Show shows the screen until the context is canceled or a key ends it. If the input is not a terminal,
// the options say what is read instead.
func (s *Screen) Show(ctx context.Context, streams genericiooptions.IOStreams, options ...tea.ProgramOption) error {
	options = append(options, tea.WithOutput(printing.Raw(streams.Out)), tea.WithoutSignalHandler())
	if in, isFile := streams.In.(*os.File); isFile && printing.IsTerminal(in) {
		options = append(options, tea.WithInput(in))
	}
	program := tea.NewProgram(s, options...)
	defer context.AfterFunc(ctx, program.Quit)()
	if _, err := program.Run(); err != nil {
		return fmt.Errorf("show table: %w", err)
	}
	return nil
}

// Ends reports whether a key ends a screen.
func Ends(key tea.KeyPressMsg) bool { return key.String() == "q" || key.String() == "ctrl+c" }

// Faint returns the text of a status.
func Faint(text string) string { return lipgloss.NewStyle().Faint(true).Render(text) }

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
