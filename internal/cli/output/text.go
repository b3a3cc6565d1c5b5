// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/internal/local"
)

// Text writes changes for people, one line each. Of a probe's runs it shows those that
// differ from the one before; the others change nothing.
type Text struct {
	out io.Writer
	// width is that of the column of pods.
	width int
	// last is the newest run seen of each probe.
	last map[probeKey]outcome
}

// probeKey names a probe of a run.
type probeKey struct {
	namespace, pod, container, marker, name string
	kind                                    local.ProbeType
}

// outcome is what a reader already knows of a probe.
type outcome struct {
	ran, success  bool
	output, error string
}

// NewText returns a printer that writes to out. The names of the pods of the run make the
// columns; nil is allowed.
func NewText(out io.Writer, pods []string) *Text {
	t := &Text{out: out, last: map[probeKey]outcome{}}
	for _, name := range pods {
		t.width = max(t.width, len(name))
	}
	return t
}

// Print writes the change, if there is something new in it.
func (t *Text) Print(change local.Change) error {
	if change.Kind == local.KindProbe && !t.news(change) {
		return nil
	}
	line := fmt.Sprintf("%s  %-*s  %-10s  %s", change.Time.Local().Format("15:04:05.000"), t.width, change.Pod, change.Kind, Describe(change))
	if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " ")); err != nil {
		return fmt.Errorf("write a change: %w", err)
	}
	return nil
}

// news tells whether a probe's change says more than the last one that was printed.
func (t *Text) news(change local.Change) bool {
	p := change.Probe
	key := probeKey{change.Namespace, change.Pod, p.Container, p.Marker, p.Name, p.Type}
	now := outcome{ran: p.Runs > 0, success: p.Success, output: p.Output, error: p.Error}
	before := t.last[key]
	t.last[key] = now
	return p.Transition || (p.Ran && now != before)
}

// Describe says in one line what changed, without the time and the pod.
func Describe(change local.Change) string {
	switch change.Kind {
	case local.KindPod:
		return string(change.Phase)
	case local.KindContainer:
		return change.Container + " " + describeStatus(change.Status)
	case local.KindProbe:
		return describeProbe(change.Probe)
	case local.KindCondition:
		c := change.Condition
		text := detail(fmt.Sprintf("%s=%s", c.Type, c.Status), c.Reason, c.Message)
		return gone(text, change.Removed)
	case local.KindLabel, local.KindAnnotation:
		return gone(change.Key+"="+oneLine(change.Value), change.Removed)
	case local.KindEvent:
		return fmt.Sprintf("%s %s: %s", change.Event.Type, change.Event.Reason, oneLine(change.Event.Message))
	case local.KindLog:
		return fmt.Sprintf("%s %s: %s", change.Container, change.Log.Stream, change.Log.Text)
	}
	return ""
}

func gone(text string, removed bool) string {
	if removed {
		return text + " removed"
	}
	return text
}

// detail appends a reason and a message to a text, where there are any.
func detail(text, reason, message string) string {
	if reason != "" {
		text += " (" + reason + ")"
	}
	if message != "" {
		text += ": " + oneLine(message)
	}
	return text
}

// ProbeName returns the name by which people know a probe: its own for a marker's, after
// its marker's, and its type for one of the kubelet's.
func ProbeName(p *local.Probe) string {
	if p.Type == local.ProbeMarker {
		return p.Marker + "#" + p.Name
	}
	return strings.ToLower(string(p.Type))
}

// describeProbe says what a probe's newest run said, and what state it made.
func describeProbe(p *local.Probe) string {
	text := p.Container + " " + ProbeName(p)
	switch {
	case !p.Ran:
		return detail(text+" "+string(p.State), "", p.Message)
	case p.Error != "":
		return detail(text+" could not be run", "", p.Error)
	}
	word := "failed"
	if p.Success {
		word = "succeeded"
	}
	text += fmt.Sprintf(" %s %d/%d", word, p.Streak, p.Threshold)
	if p.Transition {
		text += ", now " + string(p.State)
	}
	return detail(text, "", p.Output)
}

func describeStatus(status *corev1.ContainerStatus) string {
	var text string
	switch state := status.State; {
	case state.Running != nil:
		text = "running"
		if status.Ready {
			text += ", ready"
		}
	case state.Terminated != nil:
		end := state.Terminated
		text = fmt.Sprintf("terminated, exit code %d", end.ExitCode)
		if end.Signal != 0 {
			text = fmt.Sprintf("terminated, signal %d", end.Signal)
		}
		text = detail(text, end.Reason, end.Message)
	case state.Waiting != nil:
		text = detail("waiting", state.Waiting.Reason, state.Waiting.Message)
	default:
		text = "waiting"
	}
	if status.RestartCount > 0 {
		text += fmt.Sprintf(", restarts %d", status.RestartCount)
	}
	return text
}

// oneLine puts a message of several lines on one.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
