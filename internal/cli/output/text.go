// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// Text prints the changes that matter to a person, each as a line of text. A run of a probe is printed
// only if it differs from the previous run of that probe.
type Text struct {
	out io.Writer
	// verbose prints also the conditions that Kubernetes sets on every pod.
	verbose bool
	// width is the width of the column of pod names.
	width int
	// last has the last change of each probe.
	last map[probeKey]local.ProbeChange
}

// probeKey identifies a probe of a pod.
type probeKey struct {
	namespace, pod, container, marker, name string
	kind                                    local.ProbeType
}

// NewText returns a printer that writes to out. The longest of the pod names determines the
// width of their column; nil is allowed. With verbose, conditions that Kubernetes sets on every pod
// are printed, and not only Ready, which sums them up.
func NewText(out io.Writer, pods []string, verbose bool) *Text {
	t := &Text{out: out, verbose: verbose, last: map[probeKey]local.ProbeChange{}}
	for _, name := range pods {
		t.width = max(t.width, len(name))
	}
	return t
}

// Print prints the change, unless it is a run of a probe that changes nothing, or a detail.
func (t *Text) Print(change local.Change) error {
	isDetail := change.Kind == local.KindCondition && change.Condition.Type != corev1.PodReady &&
		v1alpha1.IsNativePodCondition(change.Condition.Type)
	if isDetail && !t.verbose || change.Kind == local.KindProbe && !t.isNew(change) {
		return nil
	}
	line := fmt.Sprintf("%s  %-*s  %-10s  %s", change.Time.Local().Format("15:04:05.000"), t.width, change.Pod, change.Kind, Describe(change))
	if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " ")); err != nil {
		return fmt.Errorf("write change: %w", err)
	}
	return nil
}

// isNew reports whether a probe's change differs from its last one.
func (t *Text) isNew(change local.Change) bool {
	p := change.Probe
	key := probeKey{change.Namespace, change.Pod, p.Container, p.Marker, p.Name, p.Type}
	before := t.last[key]
	t.last[key] = *p
	isSame := before.Runs > 0 && before.Success == p.Success && before.Output == p.Output && before.Error == p.Error
	return p.Transition || p.Ran && !isSame
}

// Describe describes the change in one line, without the time and the pod.
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
		text := withDetail(fmt.Sprintf("%s=%s", c.Type, c.Status), c.Reason, c.Message)
		return markRemoved(text, change.Removed)
	case local.KindLabel, local.KindAnnotation:
		return markRemoved(change.Key+"="+oneLine(change.Value), change.Removed)
	case local.KindEvent:
		return fmt.Sprintf("%s %s: %s", change.Event.Type, change.Event.Reason, oneLine(change.Event.Message))
	case local.KindLog:
		return fmt.Sprintf("%s %s: %s", change.Container, change.Log.Stream, change.Log.Text)
	}
	return ""
}

func markRemoved(text string, removed bool) string {
	if removed {
		return text + " removed"
	}
	return text
}

// withDetail appends the reason and the message, if they are not empty.
func withDetail(text, reason, message string) string {
	if reason != "" {
		text += " (" + reason + ")"
	}
	if message != "" {
		text += ": " + oneLine(message)
	}
	return text
}

// ProbeName returns the display name of a probe: "marker#probe" for a probe of a marker,
// otherwise the type, such as "liveness".
func ProbeName(p *local.ProbeChange) string {
	if p.Type == local.ProbeMarker {
		return identity.ID{Marker: p.Marker, Probe: p.Name}.String()
	}
	return strings.ToLower(string(p.Type))
}

// describeProbe describes the last run of a probe and the state that it caused.
func describeProbe(p *local.ProbeChange) string {
	text := p.Container + " " + ProbeName(p)
	switch {
	case !p.Ran:
		return withDetail(text+" "+string(p.State), "", p.Message)
	case p.Error != "":
		return withDetail(text+" could not be run", "", p.Error)
	}
	word := "failed"
	if p.Success {
		word = "succeeded"
	}
	text += fmt.Sprintf(" %s %d/%d", word, p.Streak, p.Threshold)
	if p.Transition {
		text += ", now " + string(p.State)
	}
	return withDetail(text, "", p.Output)
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
		text = withDetail(text, end.Reason, end.Message)
	case state.Waiting != nil:
		text = withDetail("waiting", state.Waiting.Reason, state.Waiting.Message)
	default:
		text = "waiting"
	}
	if status.RestartCount > 0 {
		text += fmt.Sprintf(", restarts %d", status.RestartCount)
	}
	return text
}

// oneLine joins the lines of a message.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
