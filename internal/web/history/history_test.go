// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/diagnosis"
	"github.com/seamark-dev/seamark/internal/marking/probestatus"
	"github.com/seamark-dev/seamark/internal/web/history"
	"github.com/seamark-dev/seamark/test/expect"
)

var start = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// minute returns the time so many minutes after the start.
func minute(m float64) time.Time { return start.Add(time.Duration(m * float64(time.Minute))) }

func event(reason, message string, count int32, first, last float64) corev1.Event {
	return corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "game", Name: "p", UID: "u"},
		Reason:         reason, Message: message, Count: count,
		FirstTimestamp: metav1.NewTime(minute(first)), LastTimestamp: metav1.NewTime(minute(last)),
	}
}

func succeeded(count int32, first, last float64) corev1.Event {
	return event(v1alpha1.EventReasonProbeSucceeded, "m#idle: yes", count, first, last)
}

func failed(count int32, first, last float64) corev1.Event {
	return event(v1alpha1.EventReasonProbeFailed, "m#idle: no", count, first, last)
}

func row(state v1alpha1.ProbeState, since float64) probestatus.Row {
	r := probestatus.Row{Namespace: "game", Pod: "p", UID: "u", Node: "n1", Marker: "m", Probe: "idle", Container: "c", State: state, Message: "now"}
	if state != "" {
		r.LastTransitionTime = metav1.NewTime(minute(since))
	}
	return r
}

// spans returns the spans as text: minutes and phases.
func spans(line history.Line) string {
	var parts []string
	for _, s := range line.Spans {
		parts = append(parts, fmt.Sprintf("%.0f-%.0f %s", s.Start.Sub(start).Minutes(), s.End.Sub(start).Minutes(), s.Phase))
	}
	return strings.Join(parts, ", ")
}

func TestNewLine(t *testing.T) {
	problem := &probestatus.Problem{Reason: diagnosis.Reason(v1alpha1.ProbeCannotRun), Message: "x"}
	for name, test := range map[string]struct {
		row    probestatus.Row
		events []corev1.Event
		// want are the spans of an hour.
		want string
	}{
		"nothing is known":            {row("", 0), nil, "0-60 NotKnown"},
		"state from before the start": {row("Succeeded", -30), nil, "0-60 Succeeded"},
		"state without events":        {row("Failed", 20), nil, "0-20 NotKnown, 20-60 Failed"},
		"each change has an event": {
			row("Succeeded", 40), []corev1.Event{succeeded(1, 10, 10), failed(1, 30, 30), succeeded(1, 40, 40)},
			"0-10 NotKnown, 10-30 Succeeded, 30-40 Failed, 40-60 Succeeded",
		},
		"event shortly after its transition": {
			row("Failed", 30), []corev1.Event{failed(1, 30.02, 30.02)}, "0-30 NotKnown, 30-60 Failed",
		},
		"two equal changes": {
			row("Failed", 50), []corev1.Event{failed(2, 10, 50), succeeded(1, 30, 30)},
			"0-10 NotKnown, 10-30 Failed, 30-50 Succeeded, 50-60 Failed",
		},
		"combined changes have no times": {
			row("Failed", 50), []corev1.Event{failed(5, 10, 50), succeeded(5, 15, 45)},
			"0-10 NotKnown, 10-50 Changing, 50-60 Failed",
		},
		"a change was not recorded": {
			row("Failed", 50), []corev1.Event{failed(1, 10, 10)}, "0-50 NotKnown, 50-60 Failed",
		},
		"event before the start": {
			row("Succeeded", 40), []corev1.Event{failed(1, -10, -10), succeeded(1, 40, 40)}, "0-40 Failed, 40-60 Succeeded",
		},
		"error that lasts": {
			func() probestatus.Row { r := row("Succeeded", 10); r.Problem = problem; return r }(),
			[]corev1.Event{event(v1alpha1.EventReasonProbeError, "m#idle: no program", 4, 20, 50)},
			"0-10 NotKnown, 10-20 Succeeded, 20-60 Error",
		},
		"error that has ended": {
			row("Succeeded", 10), []corev1.Event{event(v1alpha1.EventReasonProbeError, "m#idle: no program", 4, 20, 50)},
			"0-10 NotKnown, 10-20 Succeeded, 20-50 Error, 50-60 NotKnown",
		},
		"events of other probes, pods and kinds": {
			row("Succeeded", 10), []corev1.Event{
				func() corev1.Event { e := failed(1, 20, 20); e.InvolvedObject.UID = "other"; return e }(),
				event(v1alpha1.EventReasonProbeFailed, "m#other: no", 1, 20, 20), event(v1alpha1.EventReasonProbeFailed, "strange", 1, 20, 20),
				event("Killing", "m#idle: no", 1, 30, 30),
			},
			"0-10 NotKnown, 10-60 Succeeded",
		},
		"combined messages": {
			row("Failed", 30), []corev1.Event{event(v1alpha1.EventReasonProbeFailed, "(combined from similar events): m#idle: no", 1, 30, 30)},
			"0-30 NotKnown, 30-60 Failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			line := history.NewLine(&test.row, history.ParseEvents(test.events), start, minute(60))
			expect.Equal(t, "spans", test.want, spans(line))
		})
	}
}

func TestStart(t *testing.T) {
	other := failed(1, 10, 10)
	other.InvolvedObject.UID = "other"
	for name, test := range map[string]struct {
		created float64
		event   corev1.Event
		// want is the start of a timeline that ends after an hour and is at most an hour long.
		want float64
	}{
		"old pod":                        {-60, corev1.Event{}, 0},
		"young pod":                      {50, corev1.Event{}, 50},
		"new pod":                        {59.9, corev1.Event{}, 59},
		"events before the creation":     {50, failed(1, 49, 49), 49},
		"events of another pod":          {50, other, 50},
		"events before the whole window": {50, failed(1, -120, 50), 0},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: metav1.NewTime(minute(test.created))}}
			got := history.Start(pod, history.ParseEvents([]corev1.Event{test.event}), time.Hour, minute(60))
			if want := minute(test.want); !got.Equal(want) {
				t.Errorf("Start() = %s, want %s", got, want)
			}
		})
	}
}

func TestAt(t *testing.T) {
	r := row("Failed", 40)
	line := history.NewLine(&r, history.ParseEvents([]corev1.Event{succeeded(1, 10, 10), failed(1, 40, 40)}), start, minute(60))
	for name, test := range map[string]struct {
		from, to float64
		want     history.Phase
	}{
		"within a span":            {20, 30, history.Succeeded},
		"nothing known":            {0, 10, history.NotKnown},
		"known in part":            {5, 15, history.Succeeded},
		"across a change":          {35, 45, history.Changing},
		"after the end":            {70, 80, history.NotKnown},
		"at the bound of two":      {40, 50, history.Failed},
		"ends where a span starts": {30, 40, history.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, "At()", test.want, line.At(minute(test.from), minute(test.to)))
		})
	}
}

func TestTop(t *testing.T) {
	with := func(pod, node string, state v1alpha1.ProbeState, message string, problem *probestatus.Problem) probestatus.Row {
		r := row(state, 0)
		r.Pod, r.UID, r.Node, r.Message, r.Problem = pod, "u-"+r.UID, node, message, problem
		return r
	}
	flapping := row(v1alpha1.ProbeSucceeded, 0)
	rows := []probestatus.Row{
		with("ok", "n0", v1alpha1.ProbeSucceeded, "", nil),
		with("ended", "n0", "", "", &probestatus.Problem{Reason: diagnosis.PodEnding}),
		with("busy", "n2", v1alpha1.ProbeFailed, "cat: no file", nil),
		with("late", "n3", v1alpha1.ProbeFailed, "timed out after 1s", nil),
		with("waits", "n3", v1alpha1.ProbeSucceeded, "", &probestatus.Problem{Reason: diagnosis.Reason(v1alpha1.ProbeWaitingForSlot), Message: "w"}),
		with("broken", "n4", v1alpha1.ProbeSucceeded, "", &probestatus.Problem{Reason: diagnosis.Reason(v1alpha1.ProbeCannotRun), Message: "no program"}),
		with("silent", "n5", "", "", nil),
		flapping,
	}
	// 30 of 60 changes in two hours are in the last hour, and the last one of the single event.
	events := history.ParseEvents([]corev1.Event{failed(61, -60, 60), succeeded(1, 10, 10), failed(1, -30, -30)})
	var got []string
	for _, g := range history.Top(rows, events, minute(60), time.Hour) {
		got = append(got, fmt.Sprintf("%s: %d probes, %d not run, %d slow, %d failed, %.0f changes, %s: %s",
			g.Node, g.Probes, g.NotRun, g.Slow, g.Failed, g.PerHour, g.Worst, g.Message))
	}
	want := []string{
		"n4: 1 probes, 1 not run, 0 slow, 0 failed, 0 changes, broken idle: CannotRun: no program",
		"n5: 1 probes, 1 not run, 0 slow, 0 failed, 0 changes, silent idle: ",
		"n3: 2 probes, 0 not run, 2 slow, 0 failed, 0 changes, late idle: timed out after 1s",
		"n1: 1 probes, 0 not run, 0 slow, 0 failed, 32 changes, p idle: now",
		"n2: 1 probes, 0 not run, 0 slow, 1 failed, 0 changes, busy idle: cat: no file",
	}
	expect.Equal(t, "groups", want, got)
}
