// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seamark-dev/seamark/test/bench/harness"
)

// The rows of the measure of the start.
const (
	rowStartWrites     = "writes of a start with 1,000 sets of 10 pods and nothing to change"
	rowStartReconciles = "reconciles per set"
	rowStartTime       = "time from the start of the process until every set is reconciled"
	rowStartCPU        = "processor time of the start"
	rowStartMemory     = "memory (RSS) per pod"
	rowStartTotal      = "memory (RSS), 1,000 sets of 10 pods"
)

func startMeasure() harness.Measure {
	return harness.Measure{
		Name: "workloads/start", Run: measureStart,
		Rows: []string{rowStartWrites, rowStartReconciles, rowStartTime, rowStartCPU, rowStartMemory, rowStartTotal},
	}
}

// reconciles is the program's counter of reconciles.
const reconciles = "controller_runtime_reconcile_total"

// measureStart creates sets of both kinds, waits until nothing changes any more, and restarts the
// program.
func measureStart(ctx context.Context, r *harness.Run) (out harness.Output, err error) {
	sets, pods := harness.Pick(r, 500, 3), harness.Pick(r, 10, 3)
	s, err := r.Server(ctx)
	if err != nil {
		return out, err
	}
	k, err := startKubelets(ctx, r, s)
	if err != nil {
		return out, err
	}
	program, err := s.Workloads(ctx)
	if err != nil {
		return out, err
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	var empty harness.Usage
	for i, kind := range []kind{cloneSet(), advancedStatefulSet()} {
		p, wait, err := kind.follow(following, s)
		if err != nil {
			return out, err
		}
		r.OnEnd(func() error { cancel(); return wait() })
		if i == 0 {
			if err := (side{name: "seamark-workloads", scaled: kind}).warmUp(ctx, r, s, p, k, 0); err != nil {
				return out, err
			}
			if empty, err = program.Usage(); err != nil {
				return out, fmt.Errorf("measure empty program: %w", err)
			}
		}
		if err := errors.Join(kind.create(ctx, s, sets, pods), p.until(ctx, sets, pods, false, k.failure)); err != nil {
			return out, err
		}
	}
	if err := errors.Join(harness.Idle(ctx, 2*settled(r)), program.Stop()); err != nil {
		return out, err
	}
	before, err := s.Counters(ctx)
	if err != nil {
		return out, err
	}
	start := time.Now()
	if err := program.Restart(); err != nil {
		return out, err
	}
	took, err := reconciled(ctx, program, 2*sets, start)
	if err != nil {
		return out, err
	}
	if err := harness.Idle(ctx, 5*settled(r)); err != nil {
		return out, err
	}
	after, err := s.Counters(ctx)
	if err != nil {
		return out, err
	}
	return startOutput(ctx, r, program, empty, cost{took: took, writes: writesOf(after.Since(before).Requests)}, 2*sets, pods)
}

// reconciled returns the time until the program has reconciled so many times.
func reconciled(ctx context.Context, program *harness.Program, sets int, start time.Time) (took time.Duration, err error) {
	err = harness.Until(ctx, "all sets are reconciled", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		n, err := program.Total(ctx, reconciles)
		took = time.Since(start)
		// The server of the metrics may not run yet.
		return err == nil && int(n) >= sets, nil
	})
	return took, err
}

func startOutput(ctx context.Context, r *harness.Run, program *harness.Program, empty harness.Usage, c cost, sets, pods int) (harness.Output, error) {
	total, err := program.Total(ctx, reconciles)
	if err != nil {
		return harness.Output{}, err
	}
	usage, err := program.Usage()
	if err != nil {
		return harness.Output{}, err
	}
	r.Log("start: %.2f s, %.0f reconciles, writes %v, memory %d KiB, without sets %d KiB", c.took.Seconds(), total, c.writes, usage.RSS>>10, empty.RSS>>10)
	return harness.Output{Results: []harness.Result{
		{Name: rowStartWrites, Value: float64(c.total()), Budget: harness.AtMost(0)},
		{Name: rowStartReconciles, Value: total / float64(sets), Budget: harness.AtMost(1)},
		{Name: rowStartTime, Value: c.took.Seconds(), Unit: "s"},
		{Name: rowStartCPU, Value: usage.CPU.Seconds(), Unit: "s"},
		{Name: rowStartMemory, Value: max(float64(usage.RSS)-float64(empty.RSS), 0) / 1024 / float64(sets*pods), Unit: "KiB"},
		{Name: rowStartTotal, Value: float64(usage.RSS) / (1 << 20), Unit: "MiB"},
	}, Notes: []string{"Half of the sets are CloneSets, half StatefulSets. Memory is measured after the restart; the memory of the program without sets is subtracted per pod."}}, nil
}
