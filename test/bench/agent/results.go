// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/test/bench/harness"
)

const (
	rowMemory   = "memory (RSS)"
	rowNetwork  = "processor time per network probe"
	rowTCP      = "processor time per TCP probe"
	rowHTTP     = "processor time per HTTP probe"
	rowExec     = "processor time per exec probe"
	rowCalls    = "runtime calls for network probes"
	rowExecCall = "runtime calls per exec probe"
	rowWrites   = "writes to the API server while no state changes"
)

// rows returns the rows of both measures.
func rows() []string {
	return []string{rowMemory, rowNetwork, rowTCP, rowHTTP, rowExec, rowCalls, rowExecCall, rowWrites}
}

// load is what was measured with some of the probes.
type load struct {
	interval

	// floors has the processor time of one operation of each floor.
	floors map[probe.Handler]time.Duration
}

// measureFloors measures the floors of the probes at the same time. The returned function waits
// until they are in the map.
func measureFloors(floors map[probe.Handler]time.Duration, probes []planned, measure func(planned) (time.Duration, error)) (wait func() error) {
	var group errgroup.Group
	var mu sync.Mutex
	for _, p := range probes {
		group.Go(func() error {
			floor, err := measure(p)
			mu.Lock()
			defer mu.Unlock()
			floors[p.handler] = floor
			return err
		})
	}
	return group.Wait
}

// String describes the load in one line.
func (l load) String() string {
	return fmt.Sprintf("%.2f s of processor time, %.0f network and %.0f exec probes, %.0f failed, %.0f writes, %s",
		l.cpu.Seconds(), l.network(), l.runs[probe.HandlerExec], l.failed, l.writes, memory(l.after))
}

// measured is what was measured without probes, with each kind of probes, and with all.
type measured struct {
	pods        int
	period      time.Duration
	empty, full load
	alone       map[probe.Handler]load
}

// measure measures an agent under each load. The function under measures one.
func measure(period time.Duration, pods int, under func(...planned) (load, error)) (measured, error) {
	m := measured{pods: pods, period: period, alone: map[probe.Handler]load{}}
	var err error
	if m.empty, err = under(); err != nil {
		return m, err
	}
	for _, p := range probes() {
		if m.alone[p.handler], err = under(p); err != nil {
			return m, err
		}
	}
	m.full, err = under(probes()...)
	return m, err
}

// output returns the rows and notes.
func (m measured) output() harness.Output {
	tcp, web, exec := m.alone[probe.HandlerTCP], m.alone[probe.HandlerHTTP], m.alone[probe.HandlerExec]
	network := m.full.network()
	var floor time.Duration
	for _, handler := range []probe.Handler{probe.HandlerTCP, probe.HandlerHTTP} {
		floor += m.full.floors[handler] * time.Duration(m.full.runs[handler])
	}
	return harness.Output{
		Results: []harness.Result{
			{
				Name: rowMemory, Value: mebibytes(m.full.after.usage.RSS), Unit: "MiB", Budget: harness.AtMost(memoryMiB),
				Note: memory(m.full.after),
			},
			{
				Name: rowNetwork, Value: milliseconds(m.full.cpu-exec.cpu, network), Unit: "ms", Floor: milliseconds(floor, network),
				FloorName: "bare connections and requests", Budget: harness.AtMost(networkMS),
				Note: "difference between all probes and exec probes alone",
			},
			m.alike(rowTCP, "`net.Dial` and `Close`", probe.HandlerTCP),
			m.alike(rowHTTP, "`http.Get` without keep-alive", probe.HandlerHTTP),
			m.alike(rowExec, "`ExecSync` with gRPC", probe.HandlerExec),
			{
				Name: rowCalls, Value: tcp.others() + web.others(), Budget: harness.AtMost(0),
				Note: fmt.Sprintf("in %.0f network probes", tcp.network()+web.network()),
			},
			{Name: rowExecCall, Value: m.callsPerExec(), Budget: harness.AtMost(1)},
			{Name: rowWrites, Value: m.full.writes, Budget: harness.AtMost(0), Note: fmt.Sprintf("in %.0f s", m.period.Seconds())},
		},
		Notes: m.notes(),
	}
}

// callsPerExec is rounded: a call can be in progress at either end of the interval, and the list
// of each minute counts too.
func (m measured) callsPerExec() float64 {
	const digits = 10
	exec := m.alone[probe.HandlerExec]
	return math.Round(exec.others()/max(exec.runs[probe.HandlerExec], 1)*digits) / digits
}

// alike returns the row of the only kind of probes.
func (m measured) alike(name, floor string, handler probe.Handler) harness.Result {
	l := m.alone[handler]
	return harness.Result{
		Name: name, Value: milliseconds(l.cpu-m.empty.cpu, l.runs[handler]), Unit: "ms",
		Floor: milliseconds(l.floors[handler], 1), FloorName: floor,
	}
}

func (m measured) notes() []string {
	const percent = 100
	failed := m.full.failed
	for _, l := range m.alone {
		failed += l.failed
	}
	notes := []string{
		fmt.Sprintf("The node has %d pods with three probes each: TCP every second, HTTP every 5 seconds, exec every 10 seconds.", m.pods),
		fmt.Sprintf("Without probes, the agent uses %.1f MiB and %.2f ms of processor time per second.",
			mebibytes(m.empty.after.usage.RSS), milliseconds(m.empty.cpu, m.period.Seconds())),
		fmt.Sprintf("With all probes, it uses %.1f%% of a core and has %.0f goroutines.",
			m.full.cpu.Seconds()/m.period.Seconds()*percent, m.full.after.goroutines),
		"Once per minute, the agent lists all containers in case an event was lost. This is the only runtime call without exec probes.",
	}
	if failed > 0 {
		notes = append(notes, fmt.Sprintf("%.0f runs of probes failed or had no result.", failed))
	}
	return notes
}

// memory describes the parts of the memory.
func memory(r reading) string {
	return fmt.Sprintf("%.1f MiB of its own, of which the Go heap has %.1f MiB, and %.1f MiB of the program's file; peak %.1f MiB",
		mebibytes(r.usage.Anonymous), r.heap/mebibyte, mebibytes(r.usage.RSS-r.usage.Anonymous), mebibytes(r.usage.Peak))
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / mebibyte }

// milliseconds returns the processor time of each of n operations, in milliseconds.
func milliseconds(total time.Duration, n float64) float64 {
	return total.Seconds() * 1000 / max(n, 1) //nolint:mnd // milliseconds
}
