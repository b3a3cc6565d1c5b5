// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/identity"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/internal/probing/probers"
	"github.com/seamark-dev/seamark/internal/probing/slots"
	"github.com/seamark-dev/seamark/internal/probing/thresholds"
	"github.com/seamark-dev/seamark/internal/probing/worker"
	"github.com/seamark-dev/seamark/test/expect"
)

const (
	serveVariable = "SEAMARK_TEST_SERVE_TCP"
	servePrefix   = "listening on "
)

// acceptAll is the server of BenchmarkRates, in a process of its own.
func acceptAll() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(servePrefix + listener.Addr().String())
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		_ = conn.Close()
	}
}

// serve starts the server and returns its address.
func serve(b *testing.B) string {
	b.Helper()
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveVariable+"=1")
	output, err := server.StdoutPipe()
	expect.NoError(b, err)
	expect.NoError(b, server.Start())
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if address, found := strings.CutPrefix(lines.Text(), servePrefix); found {
			return address
		}
	}
	b.Fatal("the server has ended")
	return ""
}

// BenchmarkRates measures the processors that the TCP probes of a node take, with and without limits: of
// five pods with 148 probes every 100 ms, and of an ordinary node. Each iteration takes two seconds, after
// two in which the bursts are used up.
func BenchmarkRates(b *testing.B) {
	address := serve(b)
	at := func(int, int) string { return address }
	for name, tasks := range map[string][]worker.Task{
		"fast":     within(100*time.Millisecond, planOf("hostile", 5, 148, time.Second, at)),
		"ordinary": planOf("honest", 110, 5, time.Second, at),
	} {
		for limited, limits := range map[string]pace.Limits{"unlimited": {}, "limited": pace.LimitsOf(2400)} {
			b.Run(name+"/"+limited, func(b *testing.B) { measure(b, limits, tasks) })
		}
	}
}

func measure(b *testing.B, limits pace.Limits, tasks []worker.Task) {
	const warmUp, interval = 2 * time.Second, 2 * time.Second
	gate := slots.New(probers.NetworkSlots, nil)
	var runs atomic.Int64
	stop := startWorker(b.Context(), worker.Options{
		Prober: probers.New(nil, gate, "test"), Sink: discard{}, Phase: worker.PhaseOf, Limits: limits, Now: time.Now,
		Observe: func(worker.Run) { runs.Add(1) },
	}, tasks)
	<-time.After(warmUp)
	before, ran, start := processorTime(b), runs.Load(), time.Now()
	for b.Loop() {
		<-time.After(interval)
	}
	took := time.Since(start).Seconds()
	b.ReportMetric((processorTime(b)-before).Seconds()/took, "processors")
	b.ReportMetric(float64(runs.Load()-ran)/took, "runs/s")
	stop()
}

// processorTime returns the time that this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	expect.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// counter is a prober that closes done at the nth run.
type counter struct {
	n    int64
	runs atomic.Int64
	done chan struct{}
}

func (c *counter) Probe(context.Context, probing.Target) (probing.Outcome, error) {
	if c.runs.Add(1) == c.n {
		close(c.done)
	}
	return probing.Outcome{Success: true, Message: "ok"}, nil
}

// discard is a sink that ignores all changes.
type discard struct{}

func (discard) ProbeChanged(worker.Change) {}
func (discard) ProbeGone(identity.Key)     {}

// BenchmarkWorker runs 1,000 probes that are always due, and measures the overhead per run.
// It compares with a plain loop that runs each probe in its own goroutine.
func BenchmarkWorker(b *testing.B) {
	b.ReportAllocs()
	c := &counter{n: int64(b.N), done: make(chan struct{})}
	w := worker.New(worker.Options{
		Prober: c, Sink: discard{}, Observe: func(worker.Run) {}, Phase: worker.PhaseOf, Now: time.Now,
	})
	var probes []worker.Task
	for i := range 1000 {
		probes = append(probes, planned(fmt.Sprintf("p%d", i), period(time.Microsecond)))
	}
	ctx, cancel := context.WithCancel(b.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		w.Run(ctx)
	}()
	w.ContainerChanged(container(), thresholds.ContainerRun{ID: "a", Running: true, StartedAt: time.Now()})
	w.SetPlan(probes, func() {})
	b.ResetTimer()
	w.ContainersSynced()
	<-c.done
	b.StopTimer()
	cancel()
	<-stopped
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "probes/s")
	b.ReportMetric(float64(b.Elapsed())/float64(plainLoop(b, b.N)), "x_of_plain_loop")
}

// plainLoop returns how long it takes to run n probes one after another.
func plainLoop(b *testing.B, n int) time.Duration {
	b.Helper()
	c := &counter{n: -1}
	target := planned("p").Target
	done := make(chan probing.Outcome)
	start := time.Now()
	for range n {
		go func() {
			outcome, _ := c.Probe(b.Context(), target)
			done <- outcome
		}()
		<-done
	}
	return time.Since(start)
}
