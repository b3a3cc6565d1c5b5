// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workloads measures seamark-workloads against Kubernetes' own controllers of workloads, with
// the same API server and the same simulated kubelets.
package workloads

import (
	"context"
	"errors"
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
		startMeasure(), inPlaceMeasure(),
	}
}

// syncs is the number of sets that the peer handles at once, as many as Seamark.
const syncs = "32"

// gates let the built-in StatefulSet update more than one pod at a time.
const gates = "MaxUnavailableStatefulSet=true"

// compared returns the measure of one kind against its peer.
func compared(name string, ours, peer, rolled kind, peerName, rolledName string) harness.Measure {
	sides := []side{
		{name: "kube-controller-manager", scaled: peer, rolled: rolled, start: func(ctx context.Context, s *harness.Server) (*harness.Program, error) {
			return s.ControllerManager(ctx, "replicaset-controller,deployment-controller,statefulset-controller",
				"--concurrent-replicaset-syncs="+syncs, "--concurrent-deployment-syncs="+syncs, "--concurrent-statefulset-syncs="+syncs,
				"--feature-gates="+gates)
		}},
		{name: "seamark-workloads", scaled: ours, rolled: ours, start: func(ctx context.Context, s *harness.Server) (*harness.Program, error) {
			return s.Workloads(ctx)
		}},
	}
	names := [stages]string{peerName, peerName, rolledName}
	return harness.Measure{
		Name: name, Rows: rows(names),
		Run: func(ctx context.Context, r *harness.Run) (harness.Output, error) {
			return compare(ctx, r, sides, names)
		},
	}
}

// shapes returns the shapes of a run. Their number and order are constant.
func shapes(r *harness.Run) []shape {
	return harness.Pick(r, []shape{{1, 3000}, {300, 10}}, []shape{{1, 30}, {3, 10}})
}

// shapeNames are the names of the shapes in the rows.
func shapeNames() []string { return []string{"one set", "300 sets"} }

// rounds is how often each side plays each shape. It is odd, so that the median is one of the rounds.
// With many sets, only the first round has the last stage, which takes longer than the others together.
func rounds(r *harness.Run) int { return harness.Pick(r, 3, 1) }

// compare plays all stages of both sides in rounds, and compares the medians. The side that is first
// changes with each stage.
func compare(ctx context.Context, r *harness.Run, sides []side, peers [stages]string) (harness.Output, error) {
	var out harness.Output
	for i, size := range shapes(r) {
		played, err := play(ctx, r, sides, size)
		if err != nil {
			return out, err
		}
		for stage := range stages {
			theirs, ours := median(played[0][stage]), median(played[1][stage])
			out.Results = append(out.Results, results(stage, shapeNames()[i], peers[stage], ours, theirs)...)
			out.Notes = append(out.Notes, note(stage, shapeNames()[i], peers[stage], ours, theirs))
		}
	}
	return out, nil
}

// play returns the costs of all rounds of a shape, by side and stage.
func play(ctx context.Context, r *harness.Run, sides []side, size shape) (played [2][stages][]cost, err error) {
	var stations []*station
	for _, d := range sides {
		st, err := d.open(ctx, r, size)
		if err != nil {
			return played, fmt.Errorf("start %s: %w", d.name, err)
		}
		defer func() { err = errors.Join(err, st.close()) }()
		stations = append(stations, st)
	}
	for round := range rounds(r) {
		last := stageRoll
		if round > 0 && size.sets > 1 {
			last = stageScale
		}
		for stage := range last + 1 {
			for n := range stations {
				j := (n + stage + round) % len(stations)
				c, err := stations[j].measure(ctx, stage)
				if err != nil {
					return played, err
				}
				played[j][stage] = append(played[j][stage], c)
			}
		}
		for _, st := range stations {
			if err := st.clear(ctx); err != nil {
				return played, fmt.Errorf("clear %s: %w", st.name, err)
			}
		}
	}
	return played, nil
}

// title returns what a stage does.
func title(stage int, shape string) string {
	return [...]string{
		"create 3,000 pods in " + shape,
		"scale " + shape + " from 3,000 to 2,000 pods and back",
		"roll 3,000 pods in " + shape,
	}[stage]
}

func rows(peers [stages]string) (out []string) {
	for _, shape := range shapeNames() {
		for stage := range stages {
			for _, r := range results(stage, shape, peers[stage], cost{}, cost{}) {
				out = append(out, r.Name)
			}
		}
	}
	return out
}

// results compares a stage with the peer's.
func results(stage int, shape, peer string, ours, theirs cost) []harness.Result {
	name := title(stage, shape)
	return []harness.Result{
		{
			Name: name + ": time", Value: ours.took.Seconds(), Unit: "s",
			Floor: theirs.took.Seconds(), FloorName: peer, Budget: harness.RatioAtMost(1),
		},
		{
			Name: name + ": writes", Value: float64(ours.total()),
			Floor: float64(theirs.total()), FloorName: peer, Budget: harness.RatioAtMost(1),
		},
		{
			Name: name + ": API server's processor time", Value: ours.apiServer.Seconds(), Unit: "s",
			Floor: theirs.apiServer.Seconds(), FloorName: peer,
		},
		{
			Name: name + ": controller's processor time", Value: ours.controller.Seconds(), Unit: "s",
			Floor: max(theirs.controller.Seconds(), 0.01), FloorName: peer,
		},
	}
}

// note lists the writes of a stage by resource.
func note(stage int, shape, peer string, ours, theirs cost) string {
	return fmt.Sprintf("Writes to %s: Seamark %s; %s %s.", title(stage, shape), list(ours.writes), peer, list(theirs.writes))
}

func list(writes map[string]int) string {
	var parts []string
	for resource, n := range writes {
		parts = append(parts, fmt.Sprintf("`%s` %d", resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
