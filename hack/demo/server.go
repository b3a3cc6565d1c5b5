// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
)

// The marks of the example's PodProbeMarker.
const (
	idleLabel     = "gameserver-idle"
	idleCondition = corev1.PodConditionType("game.io/idle")
)

// server is the state of one pod. All fields except name, ready and ending are marks.
type server struct {
	name   string
	ready  bool
	ending bool
	// condition is the status of idleCondition and message its message. Both are empty if the
	// pod does not have the condition.
	condition, message string
	// idle is the value of idleLabel and cost the deletion cost, or empty.
	idle, cost string
}

// readServer reads the pod's marks.
func readServer(pod *corev1.Pod) server {
	s := server{
		name: pod.Name, ending: pod.DeletionTimestamp != nil,
		idle: pod.Labels[idleLabel], cost: pod.Annotations[corev1.PodDeletionCost],
	}
	for _, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			s.ready = c.Status == corev1.ConditionTrue
		case idleCondition:
			s.condition, s.message = string(c.Status), c.Message
		}
	}
	return s
}

// marked reports whether the pod has all marks of the probe.
func (s server) marked() bool { return s.condition != "" && s.idle != "" && s.cost != "" }

// isIdle reports whether the pod is marked as idle.
func (s server) isIdle() bool { return s.idle == "true" }

// does returns the activity of the server according to its marks.
func (s server) does() string {
	switch {
	case !s.marked():
		return "unmarked"
	case s.isIdle():
		return "idle"
	default:
		return "playing"
	}
}

// sameMarks reports whether both servers have the same marks.
func (s server) sameMarks(other server) bool {
	return s.condition == other.condition && s.message == other.message && s.idle == other.idle && s.cost == other.cost
}

// removable returns how many servers can be removed now so that only idle ones are, or 0 if this
// is not the time to scale down. It keeps one idle server in reserve, because a match can start
// between reading the marks and the choice of the pods. It requires two running matches, because
// the demo shows little otherwise, and ready pods, because the ReplicaSet controller orders only
// those by deletion cost.
func removable(servers []server) int {
	idle := 0
	for _, s := range servers {
		if !s.ready || s.ending || !s.marked() {
			return 0
		}
		if s.isIdle() {
			idle++
		}
	}
	if len(servers)-idle < 2 {
		return 0
	}
	return max(idle-1, 0)
}

// verdict classifies the servers that were removed.
type verdict struct {
	// idle lists the servers that were removed while idle, as expected.
	idle []string
	// begun lists the servers that were idle when scaling began and playing when they were
	// removed: a match began in between.
	begun []string
	// playing lists the servers that were playing at both times.
	playing []string
}

// classify compares the marks at the time of scaling with those at the time of removal.
func classify(before map[string]server, gone []server) verdict {
	var v verdict
	for _, s := range gone {
		switch {
		case s.isIdle():
			v.idle = append(v.idle, s.name)
		case before[s.name].isIdle():
			v.begun = append(v.begun, s.name)
		default:
			v.playing = append(v.playing, s.name)
		}
	}
	return v
}

// sorted returns the servers by name.
func sorted(servers map[string]server) []server {
	var list []server
	for _, s := range servers {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b server) int { return cmp.Compare(a.name, b.name) })
	return list
}

// writeTable writes one line per server, with a note at the end.
func writeTable(out io.Writer, servers []server, note func(server) string) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "    POD\t%s\t%s\tDELETION COST\tMESSAGE\t\n", idleCondition, strings.ToUpper(idleLabel))
	for _, s := range servers {
		fmt.Fprintf(table, "    %s\t%s\t%s\t%s\t%s\t%s\n", s.name,
			dash(s.condition), dash(s.idle), dash(s.cost), dash(firstLine(s.message)), note(s))
	}
	return table.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
