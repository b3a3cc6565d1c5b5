// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

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

// FloorArgument is the first argument with which the benchmark starts itself to measure a floor in a
// process of its own, so that its processor time has nothing else.
const FloorArgument = "probe-floor"

const (
	// path is the path of HTTP probes.
	path = "/index.html"
	// command is the command of exec probes.
	command = "/bin/true"
)

// floor is what FloorMain prints.
type floor struct {
	// Done is how many operations it did.
	Done int `json:"done"`
	// CPU is the processor time that they took.
	CPU time.Duration `json:"cpu"`
}

// FloorMain does the least that probes of one kind can do, at the same rate: net.Dial and Close,
// http.Get without keep-alive, or an ExecSync call. It prints how many it did and the processor time.
func FloorMain(args []string) error {
	flags := flag.NewFlagSet(FloorArgument, flag.ContinueOnError)
	kind := flags.String("kind", "", "handler of the probe")
	target := flags.String("target", "", "host:port, or the path of the runtime's socket")
	rate := flags.Float64("rate", 1, "operations per second")
	duration := flags.Duration("for", time.Second, "how long to measure")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("parse arguments: %w", err)
	}
	do, err := operationOf(probing.Handler(*kind), *target)
	if err == nil {
		err = do()
	}
	if err != nil {
		return fmt.Errorf("--kind=%s --target=%q: %w", *kind, *target, err)
	}
	before := harness.CPUTime()
	result := floor{Done: repeat(do, *rate, *duration)}
	result.CPU = harness.CPUTime() - before
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return fmt.Errorf("print floor: %w", err)
	}
	return nil
}

// repeat starts an operation at each tick, each in its own goroutine, and returns their number.
func repeat(do func() error, rate float64, duration time.Duration) int {
	ticks := time.NewTicker(time.Duration(float64(time.Second) / rate))
	defer ticks.Stop()
	var running sync.WaitGroup
	done := 0
	for end := time.After(duration); ; done++ {
		select {
		case <-ticks.C:
			running.Go(func() { _ = do() })
		case <-end:
			running.Wait()
			return done
		}
	}
}

// operationOf returns the least that one run of a probe can do.
func operationOf(kind probing.Handler, target string) (func() error, error) {
	switch kind {
	case probing.HandlerTCP:
		return func() error {
			conn, err := net.Dial("tcp", target)
			if err != nil {
				return err //nolint:wrapcheck // It names the address.
			}
			return conn.Close() //nolint:wrapcheck // It names the address.
		}, nil
	case probing.HandlerHTTP:
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return func() error {
			response, err := client.Get("http://" + target + path)
			if err != nil {
				return err //nolint:wrapcheck // It names the URL.
			}
			_, err = io.Copy(io.Discard, response.Body)
			return errors.Join(err, response.Body.Close())
		}, nil
	case probing.HandlerExec:
		conn, err := grpc.NewClient("unix://"+target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		client := runtimeapi.NewRuntimeServiceClient(conn)
		return func() error {
			_, err := client.ExecSync(context.Background(), &runtimeapi.ExecSyncRequest{ContainerId: "floor", Cmd: []string{command}, Timeout: 1})
			return err //nolint:wrapcheck // The caller names the target.
		}, nil
	default:
		return nil, errors.New("has no floor")
	}
}
