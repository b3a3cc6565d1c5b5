// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"math"
	"time"

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
	rowFast     = "one TCP probe per pod, 10 times per second: part of a processor"
)

// load is what an agent has done in an interval, or since its start.
type load struct {
	cpu time.Duration
	// runs has the finished runs by handler, failed those that did not succeed.
	runs   map[probing.Handler]float64
	failed float64
	// calls is the number of runtime calls, except lists of all containers.
	calls float64
	// usage, heap (in bytes) and goroutines are those at the end.
	usage            harness.Usage
	heap, goroutines float64
	// floors has the processor time of one operation of each floor.
	floors map[probing.Handler]time.Duration
}

func newLoad() load {
	return load{runs: map[probing.Handler]float64{}, floors: map[probing.Handler]time.Duration{}}
}

func (l load) since(before load) load {
	out := newLoad()
	out.cpu, out.failed, out.calls = l.cpu-before.cpu, l.failed-before.failed, l.calls-before.calls
	out.usage, out.heap, out.goroutines = l.usage, l.heap, l.goroutines
	for handler, n := range l.runs {
		out.runs[handler] = n - before.runs[handler]
	}
	return out
}

// network returns the number of network probes.
func (l load) network() float64 { return l.runs[probing.HandlerTCP] + l.runs[probing.HandlerHTTP] }

// measured is what was measured without probes, with each kind of probes, and with all.
type measured struct {
	pods        int
	period      time.Duration
	empty, full load
	fast        load
	alone       map[probing.Handler]load
}

// measure measures an agent under each load. The function under measures one.
func measure(period time.Duration, pods int, under func(...planned) load) measured {
	m := measured{pods: pods, period: period, empty: under(), alone: map[probing.Handler]load{}}
	for _, p := range probes() {
		m.alone[p.handler] = under(p)
	}
	m.full = under(probes()...)
	m.fast = under(fast())
	return m
}

// output returns the rows and notes.
func (m measured) output() harness.Output {
	tcp, web, exec := m.alone[probing.HandlerTCP], m.alone[probing.HandlerHTTP], m.alone[probing.HandlerExec]
	network := m.full.network()
	var floor time.Duration
	for _, handler := range []probing.Handler{probing.HandlerTCP, probing.HandlerHTTP} {
		floor += m.full.floors[handler] * time.Duration(m.full.runs[handler])
	}
	// A call can be in progress at either end of the interval.
	perExec := math.Round(exec.calls/max(exec.runs[probing.HandlerExec], 1)*10) / 10
	return harness.Output{
		Results: []harness.Result{
			{Name: rowMemory, Value: mebibytes(m.full.usage.RSS), Unit: "MiB", Budget: harness.AtMost(40)},
			{
				Name: rowNetwork, Value: milliseconds(m.full.cpu-exec.cpu, network), Unit: "ms", Floor: milliseconds(floor, network),
				FloorName: "bare connections and requests", Budget: harness.AtMost(0.2),
			},
			m.perProbe(rowTCP, "`net.Dial` and `Close`", probing.HandlerTCP),
			m.perProbe(rowHTTP, "`http.Get` without keep-alive", probing.HandlerHTTP),
			m.perProbe(rowExec, "`ExecSync` with gRPC", probing.HandlerExec),
			{Name: rowCalls, Value: tcp.calls + web.calls, Budget: harness.AtMost(0)},
			{Name: rowExecCall, Value: perExec, Budget: harness.AtMost(1)},
			{
				Name: rowFast, Value: 100 * (m.fast.cpu - m.empty.cpu).Seconds() / m.period.Seconds(), Unit: "%",
				Floor:     100 * (m.fast.floors[probing.HandlerTCP].Seconds()) * float64(m.pods) * fast().perSecond(),
				FloorName: "`net.Dial` and `Close` as often", Budget: harness.RatioAtMost(1),
			},
		},
		Notes: m.notes(),
	}
}

// perProbe returns the row of the only kind of probes.
func (m measured) perProbe(name, floor string, handler probing.Handler) harness.Result {
	l := m.alone[handler]
	return harness.Result{
		Name: name, Value: milliseconds(l.cpu-m.empty.cpu, l.runs[handler]), Unit: "ms",
		Floor: milliseconds(l.floors[handler], 1), FloorName: floor,
	}
}

func (m measured) notes() []string {
	failed := m.full.failed
	for _, l := range m.alone {
		failed += l.failed
	}
	usage := m.full.usage
	notes := []string{
		fmt.Sprintf("The node has %d pods with three probes each: TCP every second, HTTP every 5 seconds, exec every 10 seconds.", m.pods),
		fmt.Sprintf("The memory is %.1f MiB of its own, of which the Go heap has %.1f MiB, and %.1f MiB of the program's file; peak %.1f MiB.",
			mebibytes(usage.Anonymous), m.full.heap/harness.Mebibyte, mebibytes(usage.RSS-usage.Anonymous), mebibytes(usage.Peak)),
		fmt.Sprintf("Without probes, the agent uses %.1f MiB and %.2f ms of processor time per second.",
			mebibytes(m.empty.usage.RSS), milliseconds(m.empty.cpu, m.period.Seconds())),
		fmt.Sprintf("With all probes, it uses %.1f%% of a core and has %.0f goroutines.", 100*m.full.cpu.Seconds()/m.period.Seconds(), m.full.goroutines),
	}
	if failed > 0 {
		notes = append(notes, fmt.Sprintf("%.0f runs of probes failed or had no result.", failed))
	}
	return notes
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / harness.Mebibyte }

// milliseconds returns the processor time of each of n operations, in milliseconds.
func milliseconds(total time.Duration, n float64) float64 { return total.Seconds() * 1000 / max(n, 1) }
