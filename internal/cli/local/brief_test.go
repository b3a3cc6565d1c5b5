// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/internal/cli/exit"
	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/test/expect"
)

func conditionChange(kind string) local.Change {
	return local.Change{Kind: local.KindCondition, Namespace: "default", Pod: "web",
		Condition: &corev1.PodCondition{Type: corev1.PodConditionType(kind), Status: "True"}}
}

func eventChange(eventType, reason string) local.Change {
	return local.Change{Kind: local.KindEvent, Namespace: "default", Pod: "web", Event: &local.PodEvent{Type: eventType, Reason: reason}}
}

func TestStandardConditionsNeedVerbose(t *testing.T) {
	for name, want := range map[string][2]bool{
		"PodScheduled":  {false, true},
		"Initialized":   {false, true},
		"Ready":         {true, true},
		"game.io/ready": {true, true},
	} {
		for i, verbose := range []bool{false, true} {
			var out bytes.Buffer
			printer := output.NewText(&out, nil, verbose)
			expect.NoError(t, printer.Print(conditionChange(name)))
			if got := out.Len() > 0; got != want[i] {
				t.Errorf("%s is shown: %t, want %t with -v=%t", name, got, want[i], verbose)
			}
		}
	}
}

func TestMarksConcludeTheText(t *testing.T) {
	var out bytes.Buffer
	printer := output.NewText(&out, nil, false)
	err := printer.Conclude([]local.PodView{
		{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}},
		{
			Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web", "role": "primary"}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
					{Type: "Initialized", Status: "True"}, {Type: "Ready", Status: "True"}, {Type: "game.io/idle", Status: "False"},
				}},
			},
			MarkedLabels: []string{"role"}, MarkedConditions: []string{"game.io/idle"},
		},
	})
	expect.NoError(t, err)
	expect.Equal(t, "output", "web: Ready=True game.io/idle=False role=primary\n", out.String())
}

// While the pods of a finished run are being stopped, text shows only what matters.
func TestShutdownIsShown(t *testing.T) {
	killing := eventChange("Normal", "Killing")
	for name, test := range map[string]struct {
		brief  bool
		reason endReason
		change local.Change
		want   int
	}{
		"text, timed out":   {true, timedOut, killing, 0},
		"text, interrupted": {true, interrupted, killing, 1},
		"JSON, finished":    {false, allMet, killing, 1},
		"phase":             {true, allMet, local.Change{Kind: local.KindPod}, 0},
		"container":         {true, allMet, local.Change{Kind: local.KindContainer}, 0},
		"condition":         {true, allMet, conditionChange("Ready"), 0},
		"killing":           {true, allMet, killing, 0},
		"unhealthy":         {true, allMet, eventChange("Warning", "Unhealthy"), 0},
		"failed hook":       {true, allMet, eventChange("Warning", "FailedPreStopHook"), 1},
		"output":            {true, allMet, local.Change{Kind: local.KindLog}, 1},
		"label of a probe":  {true, allMet, label("a", "b"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(nil, true)
			s.runner, s.brief = &script{}, test.brief
			s.keepLast(test.reason)
			// Only what is shown is checked.
			s.settle()
			s.observe(test.change)
			if got, _, _ := s.Take(); len(got) != test.want {
				t.Errorf("%d changes, want %d", len(got), test.want)
			}
		})
	}
}

func TestErrorsOfAllFiles(t *testing.T) {
	folder := t.TempDir()
	first, second := filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml")
	expect.NoError(t, errors.Join(os.WriteFile(first, []byte("a: ["), 0o600), os.WriteFile(second, []byte("x: y"), 0o600)))
	_, _, err := play(t, &script{}, Options{Filenames: []string{filepath.Join(folder, "none.yaml"), first, second}})
	for _, want := range []string{"none.yaml: no such file", "a.yaml:1:1: invalid YAML", "b.yaml:1:1: not a Kubernetes object"} {
		expect.ErrorWith(t, "all files", want, err)
	}
	expect.Equal(t, "exit code", exit.Usage, exit.Code(err))
}

func TestStrictRejectsMarkerProblems(t *testing.T) {
	_, stderr, err := play(t, &script{warnings: []string{"PodProbeMarker idle: selector matches no pods"}}, Options{Strict: true, Timeout: time.Second})
	want := "invalid markers, SidecarSets or programs, and --strict is set:\n  PodProbeMarker idle: selector matches no pods"
	if err == nil || err.Error() != want || exit.Code(err) != exit.Usage || stderr != "" {
		t.Errorf("got error %v and standard error %q, want %q", err, stderr, want)
	}
}
