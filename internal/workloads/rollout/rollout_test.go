// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/rollout"
	"github.com/seamark-dev/seamark/test/expect"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	// All pods of a set of three are updated and available.
	done := planning.Progress{
		Generation: 2, Observed: 2, Desired: 3, Target: 3, Replicas: 3, Ready: 3, Available: 3, Updated: 3, UpdatedAvailable: 3,
	}
	seen := map[rollout.Reason]bool{rollout.Unplanned(errors.New("a revision is broken")).Reason: true}
	for name, test := range map[string]struct {
		change   func(p *planning.Progress)
		outdated int32
		want     rollout.State
	}{
		"all pods are updated": {
			func(*planning.Progress) {}, 0, rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "3 of 3 pods are updated and available"},
		},
		"the last change is not handled": {
			func(p *planning.Progress) { p.Generation = 3 }, 0,
			rollout.State{Phase: rollout.NotObserved, Reason: "NotObserved", Message: "generation 3 is not processed yet (observed 2)"},
		},
		"a new set": {
			func(p *planning.Progress) { *p = planning.Progress{Generation: 1, Observed: -1, Desired: 3} }, 0,
			rollout.State{Phase: rollout.NotObserved, Reason: "NotObserved", Message: "generation 1 is not processed yet"},
		},
		"a pod is missing": {
			func(p *planning.Progress) { p.Replicas, p.Updated = 2, 2 }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "Creating", Message: "2 of 3 pods exist"},
		},
		"a pod is old": {
			func(p *planning.Progress) { p.Updated, p.UpdatedAvailable = 2, 2 }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "Updating", Message: "2 of 3 pods are updated"},
		},
		"a pod is old, and the update is paused": {
			func(p *planning.Progress) { p.Updated, p.UpdatedAvailable, p.Paused = 2, 2, true }, 0,
			rollout.State{Phase: rollout.Paused, Reason: "Paused", Message: "the update is paused: 2 of 3 pods are updated"},
		},
		"the update is paused, and no pod is old": {
			func(p *planning.Progress) { p.Paused = true }, 0,
			rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "3 of 3 pods are updated and available"},
		},
		"a pod is missing, and the update is paused": {
			func(p *planning.Progress) { p.Replicas, p.Updated, p.Paused = 2, 1, true }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "Creating", Message: "2 of 3 pods exist"},
		},
		"a partition is reached": {
			func(p *planning.Progress) { p.Target, p.Updated, p.UpdatedAvailable = 2, 2, 2 }, 0,
			rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "2 of 3 pods are updated and available; kept at an earlier revision: 1"},
		},
		"a partition is reached, and an old pod is not available": {
			func(p *planning.Progress) { p.Target, p.Updated, p.UpdatedAvailable, p.Available = 2, 2, 2, 2 }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "NotAvailable", Message: "2 of 3 pods are available"},
		},
		"pods are updated when they are deleted": {
			func(p *planning.Progress) { p.Target, p.Updated, p.UpdatedAvailable, p.OnDelete = 0, 1, 1, true }, 0,
			rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "3 of 3 pods are available; to be updated on deletion: 2"},
		},
		"an old pod of a surge exists": {
			func(p *planning.Progress) { p.Replicas = 4 }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "Deleting", Message: "1 pod to be deleted"},
		},
		"an updated pod is not available": {
			func(p *planning.Progress) { p.UpdatedAvailable, p.Available = 2, 2 }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "NotAvailable", Message: "2 of 3 updated pods are available"},
		},
		"the deadline has passed": {
			func(p *planning.Progress) { p.UpdatedAvailable, p.Available, p.Exceeded = 2, 2, "it has timed out" }, 0,
			rollout.State{Phase: rollout.Stalled, Reason: "ProgressDeadlineExceeded", Message: "it has timed out"},
		},
		"the deadline had passed before the set was complete": {
			func(p *planning.Progress) { p.Exceeded = "it has timed out" }, 0,
			rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "3 of 3 pods are updated and available"},
		},
		"the API server refuses a pod": {
			func(p *planning.Progress) { p.Replicas, p.Failing = 2, "pod a: exceeded quota" }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "WritesRefused", Message: "2 of 3 pods exist: pod a: exceeded quota"},
		},
		"guards protect a pod": {
			func(p *planning.Progress) { p.Updated, p.Guarded = 2, "guard match protects 1 pod" }, 0,
			rollout.State{Phase: rollout.Progressing, Reason: "Guarded", Message: "2 of 3 pods are updated: guard match protects 1 pod"},
		},
		"other pods than those of the partition are old": {
			func(p *planning.Progress) { p.Target, p.Updated, p.UpdatedAvailable = 1, 2, 2 }, 1,
			rollout.State{Phase: rollout.Progressing, Reason: "Updating", Message: "1 pod to be updated"},
		},
		"other pods than those of the partition are old, and the update is paused": {
			func(p *planning.Progress) { p.Target, p.Updated, p.UpdatedAvailable, p.Paused = 1, 2, 2, true }, 1,
			rollout.State{Phase: rollout.Paused, Reason: "Paused", Message: "the update is paused: 1 pod to be updated"},
		},
		"other pods than those of the partition are old, and an update is refused": {
			func(p *planning.Progress) {
				p.Target, p.Updated, p.UpdatedAvailable, p.Failing = 1, 2, 2, "not in place"
			}, 1,
			rollout.State{Phase: rollout.Progressing, Reason: "WritesRefused", Message: "1 pod to be updated: not in place"},
		},
		"no pods": {
			func(p *planning.Progress) { *p = planning.Progress{Generation: 1, Observed: 1} }, 0,
			rollout.State{Phase: rollout.Complete, Reason: "Complete", Message: "0 of 0 pods are updated and available"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := done
			test.change(&p)
			got := rollout.Decide(&p, test.outdated)
			expect.Equal(t, "state", test.want, got)
			seen[got.Reason] = true
		})
	}
	expect.Equal(t, "reasons", slices.Sorted(slices.Values(rollout.Reasons())), slices.Sorted(maps.Keys(seen)))
}

// TestCompleteSetsAreFull compares the phase with what lets the controller write a status at once and report its events: a set
// whose rollout is complete has all of its pods, and they are available.
func TestCompleteSetsAreFull(t *testing.T) {
	t.Parallel()
	complete := 0
	const most = 4
	for code := range most * most * most * most * most * most {
		next := func() int32 {
			digit := code % most
			code /= most
			return int32(digit) //nolint:gosec // Less than most.
		}
		p := planning.Progress{Desired: next(), Target: next(), Replicas: next(), Ready: next(), Available: next(), Updated: next()}
		p.UpdatedAvailable = min(p.Updated, p.Available)
		if p.Target > p.Desired || p.Ready > p.Replicas || p.Available > p.Ready || p.Updated > p.Replicas {
			continue
		}
		phase := rollout.Decide(&p, 0).Phase
		if phase == rollout.Complete {
			complete++
			expect.Equal(t, "whether it is full", true, p.Full())
		}
		if p.Full() && p.Updated == p.Replicas {
			expect.Equal(t, "phase", rollout.Complete, phase)
		}
	}
	if complete == 0 {
		t.Error("no rollout is complete")
	}
}
