// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads measures seamark-workloads against Kubernetes' own controllers of workloads, with
// the same API server and the same simulated kubelets.
package workloads

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// Measures returns the measures of this package.
func Measures() []harness.Measure {
	return []harness.Measure{
		compared("workloads/cloneset", cloneSet(), replicaSet(), deployment(), "ReplicaSet", "Deployment"),
		compared("workloads/statefulset", advancedStatefulSet(), builtinStatefulSet(), builtinStatefulSet(), "StatefulSet", "StatefulSet"),
		{
			Name: "workloads/start", Run: measureStart,
			Rows: []string{rowStartWrites, rowStartReconciles, rowStartTime, rowStartCPU, rowStartMemory, rowStartTotal},
		},
		{
			Name: "workloads/sidecarsets", Run: measureSidecarSets,
			Rows: []string{
				rowUnselected, rowUnselectedRequests, rowInjectedMedian, rowInjectedTail, rowInjectorCPU, rowEntered,
				rowInjectorMemory, rowSidecarWrites, rowSidecarUpdate, rowSidecarIdle, rowInjectorMemoryMany,
			},
		},
		{
			Name: "workloads/cronjobs", Run: measureCronJobs,
			Rows: []string{rowDueAll, rowDueMedian, rowCronWrites, rowCronMemory, rowCronRestart},
		},
		{
			Name: "workloads/imagepulls", Run: measureImagePulls,
			Rows: []string{rowPullWrites, rowPullTime, rowPullMost, rowPullPresent, rowPullIdle},
		},
		{
			Name: "workloads/broadcastjobs", Run: measureBroadcastJobs,
			Rows: []string{rowBroadcastTime, rowBroadcastWrites, rowBroadcastServer, rowBroadcastEnd, rowBroadcastSteps, rowBroadcastMost, rowBroadcastIdle},
		},
		{Name: "workloads/foreign", Run: measureForeign, Rows: []string{rowForeignStatus, rowForeignCreate}},
		{Name: "workloads/types", Run: measureTypes, Rows: []string{rowTypesMemory, rowTypesStart, rowTypesCreate}},
		{Name: "workloads/daemonsets", Run: measureDaemonSets, Rows: daemonRows()},
	}
}

// syncs is the number of sets that the peer handles at once, as many as Seamark.
const syncs = "32"

// gates let the built-in StatefulSet update more than one pod at a time.
const gates = "MaxUnavailableStatefulSet=true"

func compared(name string, ours, peer, rolled kind, peerName, rolledName string) harness.Measure {
	sides := []side{
		{name: "kube-controller-manager", scaled: peer, rolled: rolled, start: func(s *harness.Server) *harness.Program {
			return s.ControllerManager("replicaset-controller,deployment-controller,statefulset-controller",
				"--concurrent-replicaset-syncs="+syncs, "--concurrent-deployment-syncs="+syncs, "--concurrent-statefulset-syncs="+syncs,
				"--feature-gates="+gates)
		}},
		{name: "seamark-workloads", scaled: ours, rolled: ours, start: (*harness.Server).Workloads},
	}
	peers := [stages]string{peerName, peerName, rolledName}
	m := harness.Measure{Name: name, Run: func(b *harness.Bench) harness.Output { return compare(b, sides, peers) }}
	for _, shape := range shapeNames() {
		for stage := range stages {
			for _, r := range results(title(stage, shape), peers[stage], cost{}, cost{}, nil) {
				m.Rows = append(m.Rows, r.Name)
			}
		}
	}
	return m
}

// shape is a number of sets and of pods in each.
type shape struct{ sets, pods int }

// shapes returns the shapes of a run. Their number and order are constant.
func shapes(b *harness.Bench) []shape {
	return harness.Pick(b, []shape{{1, 3000}, {300, 10}}, []shape{{1, 30}, {3, 10}})
}

func shapeNames() []string { return []string{"one set", "300 sets"} }

// rounds is how often each side plays each shape. It is odd, so that the median is one of the rounds.
// With many sets, only the first round has the last stage, which takes longer than the others together.
func rounds(b *harness.Bench) int { return harness.Pick(b, 3, 1) }

// compare plays all stages of both sides in rounds, and compares the medians. The side that is first
// changes with each stage. Both sides have an API server of their own at the same time and are measured in
// turn, because the machine becomes slower and faster within minutes; the other one is idle. The shapes
// use the same servers.
func compare(b *harness.Bench, sides []side, peers [stages]string) (out harness.Output) {
	var stations []*station
	for _, d := range sides {
		stations = append(stations, d.open(b))
	}
	for i, size := range shapes(b) {
		played := play(b, stations, size)
		for stage := range stages {
			theirs, ours := median(played[0][stage]), median(played[1][stage])
			out.Results = append(out.Results, results(title(stage, shapeNames()[i]), peers[stage], ours, theirs, nil)...)
			out.Notes = append(out.Notes, fmt.Sprintf("Writes to %s: Seamark %s; %s %s.",
				title(stage, shapeNames()[i]), list(ours.writes), peers[stage], list(theirs.writes)))
		}
	}
	return out
}

// play returns the costs of all rounds of a shape, by side and stage.
func play(b *harness.Bench, stations []*station, size shape) (played [2][stages][]cost) {
	b.Helper()
	for round := range rounds(b) {
		last := stageRoll
		if round > 0 && size.sets > 1 {
			last = stageScale
		}
		for stage := range last + 1 {
			for n := range stations {
				j := (n + stage + round) % len(stations)
				played[j][stage] = append(played[j][stage], stations[j].measure(stage, size))
			}
		}
		for _, st := range stations {
			st.reset(st.rolled, st.scaled)
		}
	}
	return played
}

// title returns what a stage does.
func title(stage int, shape string) string {
	return [...]string{
		"create 3,000 pods in " + shape,
		"scale " + shape + " from 3,000 to 2,000 pods and back",
		"roll 3,000 pods in " + shape,
	}[stage]
}

// results compares a stage with the peer's. The budget of the controller's processor time may be nil.
func results(title, peer string, ours, theirs cost, processors *harness.Budget) []harness.Result {
	row := func(name, unit string, ours, theirs float64, budget *harness.Budget) harness.Result {
		return harness.Result{
			Name: title + ": " + name, Value: ours, Unit: unit, Floor: theirs, FloorName: peer, Budget: budget,
		}
	}
	const processor = "'s processor time"
	return []harness.Result{
		row("time", "s", ours.took.Seconds(), theirs.took.Seconds(), harness.RatioAtMost(1)),
		row("writes", "", float64(ours.total()), float64(theirs.total()), harness.RatioAtMost(1)),
		row("API server"+processor, "s", ours.apiServer.Seconds(), harness.Positive(theirs.apiServer.Seconds()), nil),
		row("controller"+processor, "s", ours.controller.Seconds(), harness.Positive(theirs.controller.Seconds()), processors),
	}
}

// list returns the writes of a stage by resource.
func list(writes map[string]int) string {
	var parts []string
	for resource, n := range writes {
		parts = append(parts, fmt.Sprintf("`%s` %d", resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
