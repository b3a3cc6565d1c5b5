// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/text/texttest"
	"github.com/seamark-dev/seamark/test/expect"
)

func noon() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 0, time.Local) }

// game returns a pod with a probe of a marker.
func game(name, idle, message string) local.PodView {
	state, cost := v1alpha1.ProbeSucceeded, "-10"
	status := corev1.ConditionTrue
	if idle != "true" {
		state, cost, status = v1alpha1.ProbeFailed, "10", corev1.ConditionFalse
	}
	return local.PodView{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:        name,
				Labels:      map[string]string{"app": "game", "idle": idle},
				Annotations: map[string]string{"controller.kubernetes.io/pod-deletion-cost": cost},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "game"}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning,
				Conditions: []corev1.PodCondition{
					{Type: "PodScheduled", Status: "True"}, {Type: "Ready", Status: "True"}, {Type: "game.io/idle", Status: status},
				},
			},
		},
		Probes: []local.ProbeChange{{
			Type: local.ProbeMarker, Marker: "game", Name: "idle", Container: "game", State: state,
			Output: message, LastProbe: noon(), Streak: 3, Threshold: 1,
		}},
		MarkedLabels:      []string{"idle"},
		MarkedAnnotations: []string{"controller.kubernetes.io/pod-deletion-cost"},
		MarkedConditions:  []string{"game.io/idle"},
	}
}

// crashing returns a pod whose second container is in CrashLoopBackOff.
func crashing() local.PodView {
	return local.PodView{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}, {Name: "proxy"}}},
			Status: corev1.PodStatus{
				Phase:      corev1.PodRunning,
				Conditions: []corev1.PodCondition{{Type: "Ready", Status: "False"}},
				ContainerStatuses: []corev1.ContainerStatus{
					{Name: "web", RestartCount: 1},
					{Name: "proxy", RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
				},
			},
		},
		Probes: []local.ProbeChange{
			{Type: local.ProbeStartup, Container: "web", State: "Unknown", Error: "no\nanswer", LastProbe: noon()},
			{Type: local.ProbeLiveness, Container: "proxy"},
			{Type: local.ProbeMarker, Marker: "m", Name: "p", Container: "proxy", State: "Failed", Message: "container is not running"},
		},
	}
}

func lines(views []local.PodView, width int) []string {
	var out []string
	for _, line := range tableLines(rowsOf(views), width, newStyles()) {
		out = append(out, ansi.Strip(line))
	}
	return out
}

func TestScreenIsSafe(t *testing.T) {
	broken := crashing()
	broken.Probes[0].Error, broken.Probes[2].Message = texttest.Hostile, texttest.Invalid
	broken.Pod.Status.ContainerStatuses[1].State.Waiting.Reason = texttest.Hostile
	run := &fakeRun{views: []local.PodView{game(texttest.Hostile, texttest.Hostile, texttest.Hostile+texttest.Invalid), broken}}
	model := New(run, func() {})
	run.notes = []Note{{"Warning", texttest.Hostile}}
	run.changes = []local.Change{{Kind: local.KindLog, Pod: texttest.Hostile, Log: &local.LogLine{Text: texttest.Hostile}}}
	model.Poll(noon())
	model.Width, model.Height = 2000, 40
	texttest.CheckColored(t, strings.Join(model.Lines(), "\n"))
}

func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		views []local.PodView
		width int
		want  []string
	}{
		"80 columns": {
			views: []local.PodView{game("game-0", "true", "idle"), game("game-1", "false", "playing match 3\nfor 20 s")}, width: 80,
			want: []string{
				"POD / PROBE  STATE      STREAK  MARKS / MESSAGE",
				"game-0       Running            Ready=True idle=True idle=true",
				"                                pod-deletion-cost=-10",
				"  game#idle  Succeeded  3/1     idle",
				"game-1       Running            Ready=True idle=False idle=false",
				"                                pod-deletion-cost=10",
				"  game#idle  Failed     3/1     playing match 3 for 20 s",
			},
		},
		"wide enough for full keys": {
			views: []local.PodView{game("game-0", "true", "idle")}, width: 130,
			want: []string{
				"POD / PROBE  STATE      STREAK  MARKS / MESSAGE",
				"game-0       Running            Ready=True game.io/idle=True idle=true controller.kubernetes.io/pod-deletion-cost=-10",
				"  game#idle  Succeeded  3/1     idle",
			},
		},
		"narrow": {
			views: []local.PodView{game("game-with-a-long-name-0", "true", "a message that does not fit in here")}, width: 60,
			want: []string{
				"POD / PROBE  STATE      STREAK  MARKS / MESSAGE",
				"game-with-…  Running            Ready=True idle=True",
				"                                idle=true",
				"                                pod-deletion-cost=-10",
				"  game#idle  Succeeded  3/1     a message that does not fit…",
			},
		},
		"restarts, errors and no results": {
			views: []local.PodView{crashing()}, width: 80,
			want: []string{
				"POD / PROBE         STATE             STREAK      MARKS / MESSAGE",
				"web                 CrashLoopBackOff  3 restarts  Ready=False",
				"  startup (web)     Unknown                       could not be run: no answer",
				"  liveness (proxy)  -",
				"  m#p (proxy)       Failed                        container is not running",
			},
		},
		"no pods": {width: 80, want: []string{"POD / PROBE  STATE  STREAK  MARKS / MESSAGE"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(test.views, test.width)
			expect.Equal(t, "lines", test.want, got)
			for _, line := range got {
				if ansi.StringWidth(line) > test.width {
					t.Errorf("%q is wider than %d", line, test.width)
				}
			}
		})
	}
}

func TestFilter(t *testing.T) {
	rows := rowsOf([]local.PodView{game("game-0", "true", "idle"), game("game-1", "false", "playing match 3"), crashing()})
	for text, want := range map[string][]string{
		"":           {"game-0", "  game#idle", "game-1", "  game#idle", "web", "  startup (web)", "  liveness (proxy)", "  m#p (proxy)"},
		"GAME-1":     {"game-1", "  game#idle"},
		"match":      {"game-1", "  game#idle"},
		"cost=10":    {"game-1", "  game#idle"},
		"liveness":   {"web", "  liveness (proxy)"},
		"CrashLoop":  {"web", "  startup (web)", "  liveness (proxy)", "  m#p (proxy)"},
		"no such it": nil,
	} {
		t.Run(text, func(t *testing.T) {
			var got []string
			for _, r := range filterRows(rows, text) {
				got = append(got, r.name)
			}
			expect.Equal(t, "rows", want, got)
		})
	}
}

// fakeRun is a run that the test controls.
type fakeRun struct {
	views   []local.PodView
	changes []local.Change
	notes   []Note
	stage   Stage
}

func (r *fakeRun) Take() ([]local.Change, []Note, Stage) {
	changes, notes := r.changes, r.notes
	r.changes, r.notes = nil, nil
	return changes, notes, r.stage
}

func (r *fakeRun) Snapshot() []local.PodView { return r.views }

// emit adds an event and sets the state of the pods after it.
func (r *fakeRun) emit(reason string, views ...local.PodView) {
	r.views = views
	r.changes = append(r.changes, local.Change{
		Kind: local.KindEvent, Time: noon(), Pod: views[0].Pod.Name, Event: &local.PodEvent{Type: "Normal", Reason: reason, Message: "m"},
	})
}

// screen returns the screen of a model, without colors and trailing spaces.
func screen(m *Model) string {
	var out []string
	for _, line := range m.Lines() {
		out = append(out, strings.TrimRight(ansi.Strip(line), " "))
	}
	return strings.Join(out, "\n")
}

func press(t *testing.T, m *Model, keys ...string) {
	t.Helper()
	special := map[string]tea.KeyPressMsg{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "down": {Code: tea.KeyDown}, "up": {Code: tea.KeyUp},
		"pgdown": {Code: tea.KeyPgDown}, "home": {Code: tea.KeyHome}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, name := range keys {
		msg, ok := special[name]
		if !ok {
			msg = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		if msg.String() != name {
			t.Fatalf("key %q has the name %q", name, msg.String())
		}
		m.Update(msg)
	}
}

func TestScreen(t *testing.T) {
	run := &fakeRun{}
	run.emit("Started", game("game-0", "true", "idle"))
	m := New(run, func() {})
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 13})
	m.Update(Tick(noon()))
	m.Update(Tick(noon().Add(90 * time.Second)))
	want := strings.Join([]string{
		"seamark local  1 pod  1m30s",
		"POD / PROBE  STATE      STREAK  MARKS / MESSAGE",
		"game-0       Running            Ready=True idle=True idle=true",
		"                                pod-deletion-cost=-10",
		"  game#idle  Succeeded  3/1     idle",
		"EVENTS",
		"12:00:00 game-0  Normal Started: m",
		"", "", "", "", "",
		"/ filter  p pause  ↑↓ scroll  q quit",
	}, "\n")
	expect.Equal(t, "screen", want, screen(m))
}

// Every screen fits every size of the terminal.
func TestScreenFitsTerminal(t *testing.T) {
	run := &fakeRun{}
	var views []local.PodView
	for _, name := range []string{"game-0", "game-1", "game-2", "game-3", "game-4"} {
		views = append(views, game(name, "true", "idle"))
	}
	for range 50 {
		run.emit("Started", views...)
	}
	m := New(run, func() {})
	m.Update(Tick(noon()))
	for _, size := range []tea.WindowSizeMsg{
		{Width: 80, Height: 24}, {Width: 80, Height: 1}, {Width: 20, Height: 3}, {Width: 200, Height: 50}, {Width: 50, Height: 12},
	} {
		m.Update(size)
		got := m.Lines()
		expect.Equal(t, "lines on the screen", size.Height, len(got))
		for _, line := range got {
			if ansi.StringWidth(line) > size.Width {
				t.Errorf("%q is wider than %d", line, size.Width)
			}
		}
	}
	m.Update(tea.WindowSizeMsg{})
	expect.Equal(t, "height after an unknown size", 12, m.Height)
}

func TestLongPodNameIsCutInLog(t *testing.T) {
	e := logEntry{"12:00:00", strings.Repeat("long-", 20) + "0", "Normal Started: m"}
	expect.Equal(t, "line", "12:00:00 long-long-long-long…  Normal Started: m", e.line(62))
}

func TestKeys(t *testing.T) {
	setup := func() (*fakeRun, *Model, *int) {
		run, interrupts := &fakeRun{}, 0
		run.emit("Started", game("game-0", "true", "idle"), game("game-1", "true", "idle"))
		m := New(run, func() { interrupts++ })
		m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		m.Update(Tick(noon()))
		return run, m, &interrupts
	}
	has := func(t *testing.T, m *Model, want map[string]bool) {
		t.Helper()
		for text, there := range want {
			if got := screen(m); strings.Contains(got, text) != there {
				t.Errorf("%q is shown: %v, want %v:\n%s", text, !there, there, got)
			}
		}
	}
	t.Run("filter", func(t *testing.T) {
		run, m, interrupts := setup()
		run.emit("Killing", game("game-0", "true", "idle"), game("game-1", "true", "idle"))
		m.Update(Tick(noon()))
		press(t, m, "/", "g", "a", "m", "e", "-", "1")
		has(t, m, map[string]bool{"game-1 ": true, "game-0 ": false, "Killing": false, "/game-1": true})
		press(t, m, "enter")
		has(t, m, map[string]bool{"filter: game-1": true, "game-0 ": false})
		press(t, m, "esc")
		has(t, m, map[string]bool{"game-0 ": true, "Killing": true, "filter:": false})
		// In the filter, letters are text, not commands.
		press(t, m, "/", "q", "p")
		has(t, m, map[string]bool{"/qp": true, "PAUSED": false})
		press(t, m, "esc")
		has(t, m, map[string]bool{"/qp": false, "game-0 ": true})
		expect.Equal(t, "interrupts", 0, *interrupts)
	})
	t.Run("pause", func(t *testing.T) {
		run, m, _ := setup()
		press(t, m, "p")
		run.emit("KruiseProbeFailed", game("game-0", "false", "playing"), game("game-1", "true", "idle"))
		m.Update(Tick(noon()))
		has(t, m, map[string]bool{"PAUSED": true, "playing": false})
		press(t, m, "p")
		has(t, m, map[string]bool{"PAUSED": false, "playing": true, "KruiseProbeFailed": true})
	})
	t.Run("quit", func(t *testing.T) {
		run, m, interrupts := setup()
		press(t, m, "q")
		has(t, m, map[string]bool{"STOPPING": true})
		press(t, m, "ctrl+c")
		expect.Equal(t, "interrupts", 2, *interrupts)
		run.stage = Ended
		if _, cmd := m.Update(Tick(noon())); cmd == nil || cmd() != tea.Quit() {
			t.Error("the model does not quit after the run")
		}
	})
	t.Run("the run stops by itself", func(t *testing.T) {
		run, m, _ := setup()
		run.stage = Stopping
		m.Update(Tick(noon()))
		has(t, m, map[string]bool{"STOPPING": true})
	})
	t.Run("scroll", func(t *testing.T) {
		_, m, _ := setup()
		m.Update(tea.WindowSizeMsg{Width: 80, Height: 11})
		has(t, m, map[string]bool{"game-0 ": true, "game-1 ": false})
		press(t, m, "down", "down", "down")
		if got := screen(m); !strings.Contains(got, "\ngame-1 ") || strings.Contains(got, "\ngame-0 ") {
			t.Errorf("after scrolling down three lines:\n%s", got)
		}
		press(t, m, "pgdown", "pgdown", "home")
		has(t, m, map[string]bool{"\ngame-0 ": true})
	})
}

func TestNotesAreInTheLog(t *testing.T) {
	run := &fakeRun{notes: []Note{{"Warning", "a local run ignores:\n"}, {"Warning", "  Pod web: spec.hostPID"}}}
	m := New(run, func() {})
	m.Poll(noon())
	run.notes = []Note{{"Web page", "http://127.0.0.1"}}
	m.Poll(noon())
	screen := strings.Join(m.Lines(), "\n")
	for _, want := range []string{"Warning  a local run ignores:", "Warning  Pod web: spec.hostPID", "Web page  http://127.0.0.1"} {
		if strings.Count(screen, want) != 1 {
			t.Errorf("the screen does not have %q once:\n%s", want, screen)
		}
	}
}

func TestCrashesAreInTheLog(t *testing.T) {
	for code, want := range map[int32]bool{0: false, 1: true} {
		status := corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "address already in use"}
		m := New(&fakeRun{changes: []local.Change{{Kind: local.KindContainer, Time: noon(), Pod: "web-0", Container: "web",
			Status: &corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &status}}}}}, func() {})
		m.Poll(noon())
		const line = "12:00:00 web-0  web terminated, exit code 1 (Error): address already in use"
		expect.Equal(t, fmt.Sprintf("exit code %d is shown", code), want, strings.Contains(strings.Join(m.Lines(), "\n"), line))
	}
}
