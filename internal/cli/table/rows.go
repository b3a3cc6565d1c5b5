// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table is the live view of a local run on a terminal: its pods with their probes
// and marks, and a log of events. What is shown is worked out from snapshots of the run by
// pure functions; the model only keeps what keys and time have changed.
package table

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/cli/output"
	"github.com/seamark-dev/seamark/internal/local"
)

// mood is how a row is coloured.
type mood int

const (
	plain mood = iota
	good
	bad
	unsure
)

// row is one line of the table, or several where its marks need them.
type row struct {
	// name is a pod's, or a probe's with an indent.
	name string
	// state is what a pod or probe is at.
	state string
	mood  mood
	// count is a pod's restarts or a probe's streak.
	count string
	// marks are a pod's conditions, labels and annotations, each as key=value; text is a
	// probe's message. One of them is empty.
	marks []string
	text  string
	// pod is whether it is the first row of a pod.
	pod bool
}

// rowsOf returns the rows of the pods: one of each, and under it one of each of its probes.
func rowsOf(views []local.PodView) []row {
	var rows []row
	for i := range views {
		view := &views[i]
		rows = append(rows, podRow(view))
		for j := range view.Probes {
			rows = append(rows, probeRow(view.Pod, &view.Probes[j]))
		}
	}
	return rows
}

func podRow(view *local.PodView) row {
	r := row{name: view.Pod.Name, pod: true, marks: marksOf(view)}
	r.state, r.mood = podState(view.Pod)
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

// podState returns the reason for which a container waits, where there is one, else the
// pod's phase.
func podState(pod *corev1.Pod) (string, mood) {
	for _, status := range statuses(pod) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" && waiting.Reason != "ContainerCreating" {
			return waiting.Reason, bad
		}
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return string(corev1.PodRunning), good
	case corev1.PodFailed:
		return string(corev1.PodFailed), bad
	case "":
		return string(corev1.PodPending), plain
	default:
		return string(pod.Status.Phase), plain
	}
}

// marksOf returns whether the pod is ready, and then what the markers have set on it.
func marksOf(view *local.PodView) []string {
	var marks []string
	for _, condition := range view.Pod.Status.Conditions {
		if condition.Type == corev1.PodReady || slices.Contains(view.MarkedConditions, string(condition.Type)) {
			marks = append(marks, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
		}
	}
	for _, key := range view.MarkedLabels {
		marks = append(marks, key+"="+view.Pod.Labels[key])
	}
	for _, key := range view.MarkedAnnotations {
		marks = append(marks, key+"="+view.Pod.Annotations[key])
	}
	return marks
}

func probeRow(pod *corev1.Pod, p *local.Probe) row {
	name := "  " + output.ProbeName(p)
	if len(pod.Spec.Containers)+len(pod.Spec.InitContainers) > 1 {
		name += " (" + p.Container + ")"
	}
	r := row{name: name, state: string(p.State), text: strings.Join(strings.Fields(p.Output), " ")}
	if p.Threshold > 0 {
		r.count = fmt.Sprintf("%d/%d", p.Streak, p.Threshold)
	}
	switch {
	case p.Error != "":
		r.text = "could not be run: " + strings.Join(strings.Fields(p.Error), " ")
	case p.LastProbe.IsZero():
		r.text = strings.Join(strings.Fields(p.Message), " ")
	}
	switch p.State {
	case v1alpha1.ProbeSucceeded:
		r.mood = good
	case v1alpha1.ProbeFailed:
		r.mood = bad
	case "":
		r.state = "-"
	default:
		r.mood = unsure
	}
	return r
}

// filter keeps the pods of which a row contains the text: all of their rows, where it is
// the pod's own, else only those that do. Everything contains an empty text.
func filter(rows []row, text string) []row {
	if text == "" {
		return rows
	}
	var out []row
	for start := 0; start < len(rows); {
		end := start + 1
		for end < len(rows) && !rows[end].pod {
			end++
		}
		out = append(out, filterPod(rows[start:end], text)...)
		start = end
	}
	return out
}

func filterPod(rows []row, text string) []row {
	if rows[0].contains(text) {
		return rows
	}
	out := []row{rows[0]}
	for _, r := range rows[1:] {
		if r.contains(text) {
			out = append(out, r)
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

func (r row) contains(text string) bool {
	return contains(strings.Join(append([]string{r.name, r.state, r.text}, r.marks...), " "), text)
}

func contains(line, text string) bool {
	return strings.Contains(strings.ToLower(line), strings.ToLower(text))
}
