// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/clitest"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/table"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/internal/web/model"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var topNow = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func topRow(pod, node, message string) probestatus.Row {
	return probestatus.Row{
		Namespace: "games", Pod: pod, UID: types.UID(pod), Node: node, Marker: "game", Probe: "idle", Container: "main",
		State: v1alpha1.ProbeFailed, Message: message, LastTransitionTime: metav1.NewTime(topNow.Add(-time.Minute)),
	}
}

func topSet(name string, problem bool) model.Set {
	return model.Set{
		SetID:   model.SetID{Namespace: "games", Kind: "CloneSet", Name: name},
		Desired: 3, Updated: 1, Available: 2, Phase: "Progressing", Message: "1 of 3 pods are updated", Problem: problem,
	}
}

// fakeSource has rows, and one batch of changes.
type fakeSource struct {
	rows    []probestatus.Row
	sets    []model.Set
	changes []live.Change
	changed chan struct{}
}

func (f *fakeSource) Changed() <-chan struct{} { return f.changed }

func (f *fakeSource) Update() ([]live.Change, probestatus.States) {
	changes := f.changes
	f.changes = nil
	return changes, probestatus.States{}
}

func (f *fakeSource) Rows() []probestatus.Row { return f.rows }

// newTestScreen returns a screen with two rows. Commands print their arguments.
func newTestScreen(t *testing.T) (*screen, *fakeSource) {
	t.Helper()
	source := &fakeSource{
		rows:    []probestatus.Row{topRow("game-0", "node-1", "3 players"), topRow("game-1", "node-2", "5 players")},
		changed: make(chan struct{}, 1),
	}
	s := newScreen(t.Context(), &Options{Rows: 20, Window: time.Hour, Now: func() time.Time { return topNow }}, source, nil,
		func() []model.Set { return source.sets })
	s.run = func(_ context.Context, namespace string, args ...string) string {
		return "ran " + namespace + ": " + strings.Join(args, " ") + "\n" + strings.Repeat("line\n", 20)
	}
	s.logs = func(_ context.Context, row *probestatus.Row) string {
		return "logs of " + row.Container + "\n" + texttest.Hostile
	}
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 8})
	return s, source
}

// press presses a key, and handles what the command of the key returns.
func press(t *testing.T, s *screen, key tea.Key) {
	t.Helper()
	_, command := s.Update(tea.KeyPressMsg(key))
	if command != nil {
		s.Update(command())
	}
}

func topText(s *screen) string { return ansi.Strip(strings.Join(s.Lines(), "\n")) }

func TestScreen(t *testing.T) {
	const groups = `NAMESPACE  MARKER  NODE    PROBES  NOT RUN  SLOW  CHANGES/H  FAILED  WORST
games      game    node-1  1       0        0     0.0        1       game-0 idle: 3 players
games      game    node-2  1       0        0     0.0        1       game-1 idle: 5 players




↑↓ select  e explain  t timeline  l logs  x test  q quit`
	letter := func(r rune) tea.Key { return tea.Key{Code: r, Text: string(r)} }
	down, esc := tea.Key{Code: tea.KeyDown}, tea.Key{Code: tea.KeyEscape}
	for name, test := range map[string]struct {
		keys []tea.Key
		want string
	}{
		"table":         {nil, groups},
		"explain":       {[]tea.Key{letter('e')}, "explain game-0\nran games: explain game-0\n"},
		"second row":    {[]tea.Key{down, down, down, letter('t')}, "timeline game-1\nran games: timeline game-1\n"},
		"test":          {[]tea.Key{letter('x')}, "test --marker=game#idle pod/game-0\nran games: test --marker=game#idle pod/game-0\n"},
		"test with r":   {[]tea.Key{letter('r')}, "test --marker=game#idle pod/game-0\n"},
		"logs":          {[]tea.Key{letter('l')}, "logs of game-0 main\nlogs of main\n"},
		"back":          {[]tea.Key{letter('e'), down, esc}, groups},
		"scrolled":      {[]tea.Key{letter('e'), down}, "explain game-0\nline\nline\n"},
		"help of pages": {[]tea.Key{letter('e')}, "\n21 lines  ↑↓ scroll  esc back  q quit"},
		"unknown key":   {[]tea.Key{letter('z')}, groups},
		"a set":         {[]tea.Key{down, down, letter('e')}, "explain cloneset/arena\nran games: explain cloneset/arena\n"},
		"logs of a set": {[]tea.Key{down, down, letter('l')}, "\ngames      cloneset/arena  1/3      2/3        Progressing  1 of 3 pods are updated\n"},
		"help of sets":  {[]tea.Key{down, down}, "\n↑↓ select  e explain  q quit"},
	} {
		t.Run(name, func(t *testing.T) {
			s, source := newTestScreen(t)
			if strings.Contains(name, "set") {
				source.sets = []model.Set{topSet("arena", false)}
				s.Update(table.Tick(topNow))
			}
			for _, key := range test.keys {
				press(t, s, key)
			}
			got := topText(s)
			if !strings.Contains(got, test.want) {
				t.Errorf("screen:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
	s, _ := newTestScreen(t)
	for _, key := range []tea.Key{letter('q'), {Code: 'c', Mod: tea.ModCtrl}} {
		if _, command := s.Update(tea.KeyPressMsg(key)); command == nil || !cmp.Equal(command(), tea.Quit()) {
			t.Errorf("key %s does not end the watch", key)
		}
	}
}

// The selection stays on its set, below the header of its table.
func TestScreenFollowsSets(t *testing.T) {
	s, source := newTestScreen(t)
	source.rows = nil
	for _, name := range strings.Split("abcdefgh", "") {
		source.sets = append(source.sets, topSet(name, false))
	}
	s.Update(table.Tick(topNow))
	for range 7 {
		press(t, s, tea.Key{Code: tea.KeyDown})
	}
	source.sets[6] = topSet("g", true) // It comes first.
	source.sets = source.sets[1:]
	s.Update(table.Tick(topNow))
	lines := strings.Split(topText(s), "\n")
	if !strings.HasPrefix(lines[0], "NAMESPACE  SET ") || !strings.HasPrefix(lines[6], "games      cloneset/h ") || s.selectedSet().Name != "h" {
		t.Errorf("selected row %d of:\n%s", s.selected, strings.Join(lines, "\n"))
	}
}

// Changes are counted, the selection stays on its group, and the output of a page that was left is not
// shown.
func TestScreenFollowsChanges(t *testing.T) {
	s, source := newTestScreen(t)
	press(t, s, tea.Key{Code: tea.KeyDown})
	before := source.rows[1]
	before.State = v1alpha1.ProbeSucceeded
	message := source.rows[0]
	message.Message = "4 players"
	source.changes = []live.Change{{Old: &before, New: &source.rows[1]}, {Old: &source.rows[0], New: &message}, {New: &message}, {Old: &message}}
	source.changed <- struct{}{}
	s.Update(table.Tick(topNow))
	if lines := strings.Split(topText(s), "\n"); !strings.Contains(lines[1], "node-2  1       0        0     1.0") || s.selected != 0 {
		t.Errorf("selected row %d of:\n%s", s.selected, strings.Join(lines, "\n"))
	}
	_, command := s.Update(tea.KeyPressMsg{Code: 'e', Text: "e"})
	press(t, s, tea.Key{Code: tea.KeyEscape})
	s.Update(command())
	if s.page != nil {
		t.Error("a page that was left is shown again")
	}
	s.o.Now = func() time.Time { return topNow.Add(2 * time.Hour) }
	source.rows = source.rows[:1]
	s.Update(table.Tick(topNow))
	if s.selected != 0 || len(s.events) != 0 {
		t.Errorf("selected row %d, %d events", s.selected, len(s.events))
	}
	source.rows = nil
	s.Update(table.Tick(topNow))
	press(t, s, tea.Key{Code: 'e', Text: "e"})
	if got := topText(s); !strings.HasPrefix(got, "All probes run, and none has failed or changed.\n") {
		t.Errorf("screen:\n%s", got)
	}
}

func TestScreenShowsTheSelectedRowAndIsSafe(t *testing.T) {
	s, source := newTestScreen(t)
	source.rows = nil
	for _, node := range strings.Split("abcdefghij", "") {
		source.rows = append(source.rows, topRow("game-"+node, node, texttest.Hostile))
	}
	s.notice = texttest.Hostile
	s.Update(table.Tick(topNow))
	for _, height := range []int{3, 5, 30} {
		s.Update(tea.WindowSizeMsg{Width: 2000, Height: height})
		for range 12 {
			press(t, s, tea.Key{Code: tea.KeyDown})
		}
		if selected := "games      game    j"; !strings.Contains(topText(s), selected) {
			t.Errorf("the selected row is not visible:\n%s", topText(s))
		}
	}
	texttest.CheckColored(t, strings.Join(s.Lines(), "\n"))
	press(t, s, tea.Key{Code: 'l', Text: "l"})
	texttest.CheckColored(t, strings.Join(s.Lines(), "\n"))
}

// The commands of all keys run with the flags of the connection.
func TestRunCommand(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var got []string
	command := &cobra.Command{Use: "top", Run: func(cmd *cobra.Command, _ []string) { got = connectionFlags(cmd) }}
	flags := cluster.NewFlags(streams, "test")
	flags.AddTo(command)
	flags.AddAllNamespaces(command)
	command.SetArgs([]string{"--kubeconfig=none", "-n", "games", "-A", "--as=me", "--as-group=a", "--as-group=b"})
	expect.NoError(t, command.Execute())
	expect.Equal(t, "flags", []string{"--as=me", "--as-group=a", "--as-group=b", "--kubeconfig=none"}, got)
	o := &Options{Program: "seamark", Version: "test", connectionFlags: got}
	for _, args := range [][]string{{"explain", "game-0"}, {"timeline", "game-0"}, {"test", "--marker=game#idle", "pod/game-0"}} {
		if got := o.runCommand(t.Context(), "games", args...); !strings.Contains(got, "Error: read kubeconfig") || !strings.Contains(got, "none") {
			t.Errorf("output of %s: %q", args[0], got)
		}
	}
}

func TestLogsOf(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/namespaces/games/pods/game-0/log":
			_, _ = w.Write([]byte(r.URL.RawQuery + "\n"))
		case "/api/v1/namespaces/games/pods/game-1/log":
		default:
			http.Error(w, "refused", http.StatusForbidden)
		}
	}))
	defer server.Close()
	for pod, want := range map[string]string{
		"game-0": "container=main&limitBytes=1048576&tailLines=500\n",
		"game-1": "Container main has written nothing.",
		"game-2": "Error: get logs of container main: ",
	} {
		row := topRow(pod, "node-1", "")
		if got := logsOf(t.Context(), &rest.Config{Host: server.URL}, &row); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", pod, got, want)
		}
	}
}

func TestWatchNeedsATerminal(t *testing.T) {
	for want, args := range map[string][]string{
		`--watch: the output must be a terminal; "seamark get --watch" prints changes elsewhere`: {"top", "-w"},
		`--output: "json" is invalid: must be text with --watch`:                                 {"top", "-w", "-o", "json"},
	} {
		if _, stderr, code := clitest.Execute(t, New, "", args...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, errors %q, want %q", args, code, stderr, want)
		}
	}
}
