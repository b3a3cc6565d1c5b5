// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
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

// reconciles is the program's counter of reconciles.
const reconciles = "controller_runtime_reconcile_total"

// measureStart creates sets of both kinds, waits until nothing changes any more, and restarts the
// program.
func measureStart(b *harness.Bench) harness.Output {
	size := harness.Pick(b, shape{500, 10}, shape{3, 3})
	kinds := []kind{cloneSet(), advancedStatefulSet()}
	st := newStation(b, side{name: "seamark-workloads", start: (*harness.Server).Workloads}, kinds...)
	st.create(kinds[0], shape{1, 0})
	st.reset(kinds[0])
	empty := st.controller.Usage()
	for _, k := range kinds {
		st.create(k, size)
	}
	b.Idle(2 * st.settled())
	st.controller.Stop()
	sets := float64(len(kinds) * size.sets)
	var took time.Duration
	writes := cost{writes: writesOf(st.server.Counted(func() {
		start := time.Now()
		st.controller.Restart()
		st.controller.Runs(reconciles, sets)
		took = time.Since(start)
		b.Idle(5 * st.settled())
	}).Requests)}
	total, err := st.controller.Total(b.Context(), reconciles)
	b.Must(err)
	usage := st.controller.Usage()
	b.Logf("writes %v, without sets %d KiB", writes.writes, empty.RSS>>10)
	return harness.Output{
		Results: []harness.Result{
			{Name: rowStartWrites, Value: float64(writes.total()), Budget: harness.AtMost(0)},
			{Name: rowStartReconciles, Value: total / sets, Budget: harness.AtMost(1)},
			{Name: rowStartTime, Value: took.Seconds(), Unit: "s"},
			{Name: rowStartCPU, Value: usage.CPU.Seconds(), Unit: "s"},
			{Name: rowStartMemory, Value: max(float64(usage.RSS)-float64(empty.RSS), 0) / 1024 / (sets * float64(size.pods)), Unit: "KiB"},
			{Name: rowStartTotal, Value: float64(usage.RSS) / harness.Mebibyte, Unit: "MiB"},
		},
		Notes: []string{"Half of the sets are CloneSets, half StatefulSets. Memory is measured after the restart; the memory of the program without sets is subtracted per pod."},
	}
}
