// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table shows a local run live on a terminal: its pods with their probes and marks,
// and a log of events. Pure functions derive the screen from snapshots of the run; the model
// keeps only the state that keys and time change. The Screen is that of all commands.
package table

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
	"github.com/seamark-dev/seamark/internal/program/text"
)

// health determines the color of a row's state.
type health int

const (
	neutral health = iota
	healthy
	unhealthy
	uncertain
)

// row is one row of the table. Its marks may need several lines.
type row struct {
	// name is the name of a pod, or the indented name of a probe.
	name string
	// state is the state of the pod or probe.
	state  string
	health health
	// count is the restarts of a pod or the streak of a probe.
	count string
	// marks are the conditions, labels and annotations of a pod, each as key=value. text is
	// the message of a probe. One of them is empty.
	marks []string
	text  string
	// pod is whether the row is a pod, not a probe.
	pod bool
}

// rowsOf returns one row per pod, each followed by one row per probe of the pod.
func rowsOf(views []local.PodView) []row {
	var rows []row
	for i := range views {
		view := &views[i]
		rows = append(rows, podRow(view).safe())
		for j := range view.Probes {
			rows = append(rows, probeRow(view.Pod, &view.Probes[j]).safe())
		}
	}
	return rows
}

// safe returns the row with safe text in one line: the screen has colors, and cannot be made safe as a
// whole.
func (r row) safe() row {
	r.name, r.state, r.text = text.Safe(r.name), text.Line(r.state), text.Line(r.text)
	for i := range r.marks {
		r.marks[i] = text.Line(r.marks[i])
	}
	return r
}

func podRow(view *local.PodView) row {
	r := row{name: view.Pod.Name, pod: true, marks: output.Marks(view)}
	r.state, r.health = podState(view.Pod)
	restarts := 0
	for _, status := range statuses(view.Pod) {
		restarts += int(status.RestartCount)
	}
	switch restarts {
	case 0:
	case 1:
		r.count = "1 restart"
	default:
		r.count = fmt.Sprintf("%d restarts", restarts)
	}
	return r
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// podState returns the reason why a container is waiting, such as CrashLoopBackOff, or the
// phase of the pod.
func podState(pod *corev1.Pod) (string, health) {
	for _, status := range statuses(pod) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
			return waiting.Reason, unhealthy
		}
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return string(corev1.PodRunning), healthy
	case corev1.PodFailed:
		return string(corev1.PodFailed), unhealthy
	case "":
		return string(corev1.PodPending), neutral
	default:
		return string(pod.Status.Phase), neutral
	}
}

func probeRow(pod *corev1.Pod, p *local.ProbeChange) row {
	name := "  " + output.ProbeName(p)
	if len(pod.Spec.Containers)+len(pod.Spec.InitContainers) > 1 {
		name += " (" + p.Container + ")"
	}
	r := row{name: name, state: string(p.State), text: p.Output}
	if p.Threshold > 0 {
		r.count = fmt.Sprintf("%d/%d", p.Streak, p.Threshold)
	}
	switch {
	case p.Error != "":
		r.text = "could not be run: " + p.Error
	case p.LastProbe.IsZero():
		r.text = p.Message
	}
	switch p.State {
	case v1alpha1.ProbeSucceeded:
		r.health = healthy
	case v1alpha1.ProbeFailed:
		r.health = unhealthy
	case "":
		r.state = "-"
	default:
		r.health = uncertain
	}
	return r
}

// filterRows keeps the pods that have a row with the text. If it is the row of the pod, all
// rows of the pod are kept, otherwise only those with the text. An empty text keeps all rows.
func filterRows(rows []row, wanted string) []row {
	var out []row
	// pod is the row of a pod, and kept whether it is in out. whole is whether all of its rows are kept.
	var pod row
	var kept, whole bool
	for _, r := range rows {
		if r.pod {
			pod, kept, whole = r, false, r.contains(wanted)
		}
		if !whole && !r.contains(wanted) {
			continue
		}
		if !kept && !r.pod {
			out = append(out, pod)
		}
		kept = true
		out = append(out, r)
	}
	return out
}

func (r row) contains(wanted string) bool {
	return contains(strings.Join(append([]string{r.name, r.state, r.text}, r.marks...), " "), wanted)
}

func contains(line, wanted string) bool {
	return strings.Contains(strings.ToLower(line), strings.ToLower(wanted))
}
