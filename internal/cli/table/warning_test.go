// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
)

// crashes is a run with one container that has ended.
type crashes struct {
	status corev1.ContainerStateTerminated
}

func (c crashes) Take() ([]local.Change, Stage) {
	return []local.Change{{Kind: local.KindContainer, Time: noon(), Pod: "web-0", Container: "web",
		Status: &corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &c.status}}}}, Running
}

func (c crashes) Snapshot() []local.PodView { return nil }

func TestWarningsAreInTheLog(t *testing.T) {
	m := New(crashes{}, func() {})
	m.Warn([]string{"PodProbeMarker idle: selector matches no pods", "a local run ignores:\n  Pod web: spec.hostPID"})
	screen := strings.Join(m.lines(), "\n")
	for _, want := range []string{"Warning  PodProbeMarker idle: selector matches no pods", "Warning  a local run ignores:", "Warning  Pod web: spec.hostPID"} {
		if !strings.Contains(screen, want) {
			t.Errorf("screen does not contain %q:\n%s", want, screen)
		}
	}
}

// The URL of the web page is shown when the run starts, and again when it changes.
func TestNotesAreInTheLog(t *testing.T) {
	m := New(crashes{}, func() {})
	note := "first"
	m.Note("Web page", func() string { return note })
	m.poll()
	note = "second"
	m.poll()
	m.poll()
	screen := strings.Join(m.lines(), "\n")
	for _, want := range []string{"Web page  first", "Web page  second"} {
		if strings.Count(screen, want) != 1 {
			t.Errorf("the screen does not have %q once:\n%s", want, screen)
		}
	}
}

func TestCrashesAreInTheLog(t *testing.T) {
	for code, want := range map[int32]bool{0: false, 1: true} {
		m := New(crashes{corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: "address already in use"}}, func() {})
		m.poll()
		const line = "12:00:00 web-0  web terminated, exit code 1 (Error): address already in use"
		if got := strings.Contains(strings.Join(m.lines(), "\n"), line); got != want {
			t.Errorf("exit code %d is shown: %t, want %t", code, got, want)
		}
	}
}
