// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
	"github.com/seamark-dev/seamark/test/golden"
	"github.com/seamark-dev/seamark/test/process"
)

// script is a watch that delivers batches of changes, and then calls end.
type script struct {
	batches [][]live.Change
	rows    []probestatus.Row
	invalid map[types.NamespacedName]error
	end     func()
}

func (s *script) Changed() <-chan struct{} {
	changed := make(chan struct{}, 1)
	if len(s.batches) > 0 {
		changed <- struct{}{}
	} else {
		s.end()
	}
	return changed
}

func (s *script) Update() ([]live.Change, probestatus.States) {
	if len(s.batches) == 0 {
		return nil, probestatus.States{Invalid: s.invalid}
	}
	next := s.batches[0]
	s.batches = s.batches[1:]
	return next, probestatus.States{Invalid: s.invalid}
}

func (s *script) Rows() []probestatus.Row { return append([]probestatus.Row{}, s.rows...) }

func row(pod string, state v1alpha1.ProbeState, message string) *probestatus.Row {
	return &probestatus.Row{
		Namespace: "games", Pod: pod, Node: "node-1", Marker: "game", Probe: "idle", Container: "main", State: state,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)), LastProbeTime: metav1.NewTime(now.Add(-time.Second)),
		Message: message, Source: probestatus.SourceReport,
	}
}

// history returns a watch of two pods: one changes and is removed, another follows.
func history() *script {
	first, second := row("game-0", v1alpha1.ProbeFailed, "12 players"), row("game-1", "", "")
	idle, marked := row("game-0", v1alpha1.ProbeSucceeded, "no players"), row("game-0", v1alpha1.ProbeSucceeded, "no players")
	marked.Marks = []probestatus.Mark{{Kind: mark.KindLabel, Name: "role", Value: "idle"}}
	marked.LastProbeTime = metav1.NewTime(now)
	third := row("a-pod-with-a-longer-name", v1alpha1.ProbeFailed, "1 player")
	return &script{batches: [][]live.Change{
		{{New: first}, {New: second}},
		{{Old: first, New: idle}},
		// Only -o wide and other formats show this.
		{{Old: idle, New: marked}},
		{{New: third}, {Old: marked}},
	}}
}

// follow runs the command with the flags and the watch.
func follow(t *testing.T, s *script, change func(*options)) string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	streams.Out, streams.ErrOut = printing.Safe(out), printing.Safe(errOut)
	o := &options{IOStreams: streams, Cluster: cluster.NewFlags(streams, "test"), now: func() time.Time { return now }}
	change(o)
	expect.NoError(t, o.Complete(nil))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.end = cancel
		notices := make(live.Notices, 1)
		expect.Success(t, o.follow(ctx, s, notices, func(probestatus.States) string { return "No probes." }))
	})
	return out.String() + "--- standard error\n" + errOut.String()
}

func TestFollow(t *testing.T) {
	for name, change := range map[string]func(*options){
		"watch-table":          func(*options) {},
		"watch-wide":           func(o *options) { o.Output.Output = "wide" },
		"watch-namespaces":     func(o *options) { o.Cluster.AllNamespaces = true },
		"watch-no-headers":     func(o *options) { o.Output.NoHeaders = true },
		"watch-only":           func(o *options) { o.WatchOnly = true },
		"watch-failed":         func(o *options) { o.States = []string{"failed"} },
		"watch-another-marker": func(o *options) { o.Marker = "other" },
		"watch-json":           func(o *options) { o.Output.Output = "json" },
		"watch-yaml":           func(o *options) { o.Output.Output = "yaml" },
		"watch-name":           func(o *options) { o.Output.Output = "name" },
		"watch-jsonpath":       func(o *options) { o.Output.Output = `jsonpath={.pod} {.state} {.removed}{"\n"}` },
	} {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, filepath.Join("testdata", name+".golden"), follow(t, history(), change))
		})
	}
}

// A warning is printed once while it applies.
func TestFollowWarns(t *testing.T) {
	s := history()
	s.invalid = map[types.NamespacedName]error{{Namespace: "games", Name: "bad"}: context.Canceled}
	expect.Equal(t, "warnings printed", 1, strings.Count(follow(t, s, func(*options) {}), "Warning: PodProbeMarker games/bad has no effect"))
}

func TestGetIsSafe(t *testing.T) {
	s := history()
	s.invalid = map[types.NamespacedName]error{{Namespace: "games", Name: "bad"}: errors.New(texttest.Hostile)}
	for _, batch := range s.batches {
		for _, change := range batch {
			if change.New != nil {
				change.New.Message = texttest.Hostile
			}
		}
	}
	texttest.Check(t, follow(t, s, func(*options) {}))

	screen, notices := newTestScreen(t, 1)
	screen.rows[0].Message = texttest.Hostile
	notices <- texttest.Hostile
	screen.Poll(now)
	screen.rows[0].Message, screen.warnings, screen.Width = texttest.Hostile, []string{texttest.Hostile}, 2000
	texttest.CheckColored(t, strings.Join(screen.Lines(), "\n"))
}

// newTestScreen returns a screen with rows of that many pods.
func newTestScreen(t *testing.T, pods int) (s *screen, notices live.Notices) {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	o := &options{IOStreams: streams, Cluster: cluster.NewFlags(streams, "test"), now: func() time.Time { return now }}
	source := &script{batches: [][]live.Change{nil}, end: func() {}}
	for i := range pods {
		source.rows = append(source.rows, *row("game-"+string(rune('a'+i)), v1alpha1.ProbeSucceeded, "no players"))
	}
	notices = make(live.Notices, 1)
	return newScreen(o, source, notices), notices
}

func screenText(s *screen) string { return ansi.Strip(strings.Join(s.Lines(), "\n")) + "\n" }

func TestScreen(t *testing.T) {
	for name, test := range map[string]struct {
		pods, width, height int
		keys                []tea.Key
		notice              string
	}{
		"screen-all":         {pods: 3, width: 80, height: 8},
		"screen-hidden":      {pods: 20, width: 80, height: 6},
		"screen-scrolled":    {pods: 20, width: 80, height: 6, keys: []tea.Key{{Code: tea.KeyPgDown}, {Code: tea.KeyDown}}},
		"screen-end":         {pods: 5, width: 80, height: 5, keys: []tea.Key{{Code: tea.KeyPgDown}, {Code: tea.KeyPgDown}, {Code: tea.KeyPgDown}}},
		"screen-narrow":      {pods: 3, width: 30, height: 6},
		"screen-one-line":    {pods: 3, width: 40, height: 1},
		"screen-notice":      {pods: 1, width: 80, height: 4, notice: "Watching again."},
		"screen-without-any": {pods: 0, width: 80, height: 4},
	} {
		t.Run(name, func(t *testing.T) {
			s, notices := newTestScreen(t, test.pods)
			s.Update(tea.WindowSizeMsg{Width: test.width, Height: test.height})
			for _, key := range test.keys {
				s.Update(tea.KeyPressMsg(key))
			}
			if test.notice != "" {
				notices <- test.notice
				s.Update(table.Tick(now))
			}
			golden.Compare(t, filepath.Join("testdata", name+".golden"), screenText(s))
		})
	}
}

// Keys and interrupts end the screen, and the last table stays on the terminal.
func TestLastTableStays(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	press := func(keys string) func(*os.File, func()) {
		return func(keyboard *os.File, _ func()) { _, _ = keyboard.WriteString(keys) }
	}
	for name, end := range map[string]func(keyboard *os.File, interrupt func()){
		"key": press("q"), "Ctrl-C": press("\x03"), "interrupt": func(_ *os.File, interrupt func()) { interrupt() },
	} {
		t.Run(name, func(t *testing.T) {
			keyboard, terminal, err := pty.Open()
			expect.NoError(t, errors.Join(err, pty.Setsize(keyboard, &pty.Winsize{Rows: 3, Cols: 70})))
			var output process.Buffer
			read := make(chan struct{})
			go func() {
				defer close(read)
				// Reading from a closed terminal is an error.
				_, _ = io.Copy(&output, keyboard)
			}()
			s, notices := newTestScreen(t, 2)
			s.o.In, s.o.Out = terminal, terminal
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			shown := make(chan error, 1)
			source := &script{batches: [][]live.Change{nil}, rows: s.rows, end: func() {}}
			go func() { shown <- s.o.show(ctx, source, notices) }()
			output.Await(t, "2 probes, 1 hidden")
			end(keyboard, cancel)
			expect.Success(t, errors.Join(<-shown, terminal.Close()))
			<-read
			_ = keyboard.Close()
			const leave = "\x1b[?1049l"
			if _, last, left := strings.Cut(output.Raw(), leave); !left || !strings.Contains(last, "game-a") || !strings.Contains(last, "1 more") {
				t.Errorf("after the screen %q", last)
			}
		})
	}
}
