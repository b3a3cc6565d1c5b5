// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package get

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/cluster"
	"github.com/seamark-dev/seamark/internal/cli/live"
	"github.com/seamark-dev/seamark/internal/cli/printing"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/states"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/golden"
)

// script is a watch that delivers batches of changes, and then calls end.
type script struct {
	batches [][]live.Change
	rows    []probestate.Row
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

func (s *script) Update() ([]live.Change, probestate.States) {
	if len(s.batches) == 0 {
		return nil, probestate.States{Invalid: s.invalid}
	}
	next := s.batches[0]
	s.batches = s.batches[1:]
	return next, probestate.States{Invalid: s.invalid}
}

func (s *script) Rows() []probestate.Row { return append([]probestate.Row{}, s.rows...) }

func row(pod string, state v1alpha1.ProbeState, message string) *probestate.Row {
	return &probestate.Row{
		Namespace: "games", Pod: pod, Node: "node-1", Marker: "game", Probe: "idle", Container: "main", State: state,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)), LastProbeTime: metav1.NewTime(now.Add(-time.Second)),
		Message: message, Source: probestate.SourceReport,
	}
}

// history returns a watch of two pods: one changes and is removed, another follows.
func history() *script {
	first, second := row("game-0", v1alpha1.ProbeFailed, "12 players"), row("game-1", "", "")
	idle, marked := row("game-0", v1alpha1.ProbeSucceeded, "no players"), row("game-0", v1alpha1.ProbeSucceeded, "no players")
	marked.Marks = []probestate.Mark{{Kind: mark.KindLabel, Name: "role", Value: "idle"}}
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
func follow(t *testing.T, s *script, change func(*Options)) string {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	streams.Out, streams.ErrOut = printing.Safe(out), printing.Safe(errOut)
	o := &Options{IOStreams: streams, Cluster: cluster.NewFlags(streams, "test"), now: func() time.Time { return now }}
	change(o)
	if err := o.Complete(nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.end = cancel
		notices := make(chan string, maxNotices)
		if err := o.follow(ctx, s, notices, func(probestate.States) string { return "No probes." }); err != nil {
			t.Error(err)
		}
	})
	return out.String() + "--- standard error\n" + errOut.String()
}

func TestFollow(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"watch-table":          func(*Options) {},
		"watch-wide":           func(o *Options) { o.Output.Output = "wide" },
		"watch-namespaces":     func(o *Options) { o.Cluster.AllNamespaces = true },
		"watch-no-headers":     func(o *Options) { o.Output.NoHeaders = true },
		"watch-only":           func(o *Options) { o.WatchOnly = true },
		"watch-failed":         func(o *Options) { o.States = []string{"failed"} },
		"watch-another-marker": func(o *Options) { o.Marker = "other" },
		"watch-json":           func(o *Options) { o.Output.Output = "json" },
		"watch-yaml":           func(o *Options) { o.Output.Output = "yaml" },
		"watch-name":           func(o *Options) { o.Output.Output = "name" },
		"watch-jsonpath":       func(o *Options) { o.Output.Output = `jsonpath={.pod} {.state} {.removed}{"\n"}` },
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
	if got := strings.Count(follow(t, s, func(*Options) {}), "Warning: PodProbeMarker games/bad has no effect"); got != 1 {
		t.Errorf("printed %d times", got)
	}
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
	texttest.Check(t, follow(t, s, func(*Options) {}))

	screen, notices := newTestScreen(t, 1)
	screen.rows[0].Message = texttest.Hostile
	notices <- texttest.Hostile
	screen.poll()
	screen.rows[0].Message, screen.warnings, screen.width = texttest.Hostile, []string{texttest.Hostile}, 2000
	texttest.CheckColored(t, strings.Join(screen.lines(), "\n"))
}

// newTestScreen returns a screen with rows of that many pods.
func newTestScreen(t *testing.T, pods int) (s *screen, notices chan string) {
	t.Helper()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	o := &Options{IOStreams: streams, Cluster: cluster.NewFlags(streams, "test"), now: func() time.Time { return now }}
	source := &script{batches: [][]live.Change{nil}, end: func() {}}
	for i := range pods {
		source.rows = append(source.rows, *row("game-"+string(rune('a'+i)), v1alpha1.ProbeSucceeded, "no players"))
	}
	notices = make(chan string, maxNotices)
	return newScreen(o, source, notices), notices
}

func screenText(s *screen) string { return ansi.Strip(strings.Join(s.lines(), "\n")) + "\n" }

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
				s.Update(tick{})
			}
			golden.Compare(t, filepath.Join("testdata", name+".golden"), screenText(s))
		})
	}
}

// The screen follows the size of the terminal and the rows, and never has more lines.
func TestScreenIsBounded(t *testing.T) {
	s, _ := newTestScreen(t, 20)
	source, _ := s.source.(*script)
	for _, height := range []int{1, 2, 3, 10, 22, 50, 4} {
		for range 30 {
			s.Update(tea.KeyPressMsg{Code: tea.KeyDown})
		}
		s.Update(tea.WindowSizeMsg{Width: 40, Height: height})
		if got := len(s.lines()); got != height {
			t.Errorf("%d lines on a terminal with %d", got, height)
		}
		source.rows, source.batches = source.rows[:len(source.rows)-2], [][]live.Change{nil}
		s.Update(tick{})
		if got := len(s.lines()); got != height {
			t.Errorf("%d lines on a terminal with %d after pods were removed", got, height)
		}
	}
	s.Update(tea.WindowSizeMsg{})
	if s.height != 4 {
		t.Errorf("height %d after an unknown size, want 4", s.height)
	}
	for _, key := range []tea.Key{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		_, command := s.Update(tea.KeyPressMsg(key))
		if command == nil || !cmp.Equal(command(), tea.Quit()) {
			t.Errorf("key %s does not end the watch", key)
		}
	}
}
