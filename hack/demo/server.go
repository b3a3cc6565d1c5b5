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

// What the example's PodProbeMarker puts on the pods.
const (
	idleLabel     = "gameserver-idle"
	idleCondition = corev1.PodConditionType("game.io/idle")
)

// server is what the demo sees of one pod. All of it but ready and ending is marks.
type server struct {
	name   string
	ready  bool
	ending bool
	// condition is the status of idleCondition and message its message; both empty
	// while the pod has none.
	condition, message string
	// idle is the value of idleLabel and cost the pod's deletion cost; empty while the
	// pod has none.
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

// marked is whether the pod carries any result of the probe.
func (s server) marked() bool { return s.condition != "" && s.idle != "" && s.cost != "" }

// isIdle is whether the pod is marked as one without a match.
func (s server) isIdle() bool { return s.idle == "true" }

// does says in one word what the marks say.
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

// sameMarks is whether both carry the same marks.
func (s server) sameMarks(other server) bool {
	return s.condition == other.condition && s.message == other.message && s.idle == other.idle && s.cost == other.cost
}

// removable returns how many servers may go now so that, with one to spare, only idle
// ones do; 0 means that now is no time to scale down. The one to spare is for a match
// that starts in the moment between the look at the marks and the choice of the pods.
// With fewer than two matches on there is little to see, and the ReplicaSet controller
// ranks by deletion cost only pods that are ready.
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

// verdict is what became of the servers that went.
type verdict struct {
	// idle went while idle, as they should.
	idle []string
	// begun were idle at the look and marked as playing when they went: a match began
	// in the moment between.
	begun []string
	// playing were playing at the look and when they went.
	playing []string
}

// judge compares the marks at the moment of scaling with those at the moment of going.
func judge(before map[string]server, gone []server) verdict {
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

// writeTable writes a line a server, with note telling something more of each.
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
