// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs runs Seamark's programs as processes of this machine, and restarts them as the kubelet restarts
// containers.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// restartDelay is the time after the end of a program until it is started again.
const restartDelay = time.Second

// Spec describes a program.
type Spec struct {
	// Name is unique in a run. It is a DNS label.
	Name string
	// Path and Args are the command, without the name of the program.
	Path string
	Args []string
	// NetNS is the name of a network namespace, or empty for that of the machine.
	NetNS string
	// Metrics is the URL of the program's metrics.
	Metrics string
	// Log is the file that its output is appended to.
	Log string
	// Cgroup is the folder of a cgroup, or empty for that of the test.
	Cgroup string
}

// Program is a program that is started again whenever it ends. It is for concurrent use.
type Program struct {
	Spec

	mu      sync.Mutex
	process *os.Process
	// next is what the next start uses.
	next   Spec
	starts int
	closed bool
	done   chan struct{}
	stop   chan struct{}
}

// Start starts a program. The caller must call Close.
func Start(spec Spec) (*Program, error) {
	p := &Program{Spec: spec, next: spec, done: make(chan struct{}), stop: make(chan struct{})}
	command, err := p.run()
	if err != nil {
		return nil, err
	}
	go p.supervise(command)
	return p, nil
}

// supervise waits for the end of the program and starts it again, until Close.
func (p *Program) supervise(command *exec.Cmd) {
	defer close(p.done)
	for {
		// How it ended is in its log.
		_ = command.Wait()
		for {
			select {
			case <-p.stop:
				return
			case <-time.After(restartDelay):
			}
			var err error
			if command, err = p.run(); err == nil {
				break
			}
		}
	}
}

var errClosed = errors.New("the program is closed")

func (p *Program) run() (*exec.Cmd, error) {
	p.mu.Lock()
	spec := p.next
	p.mu.Unlock()
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }()
	args := append([]string{spec.Path}, spec.Args...)
	// nsenter and the shell become the program: the process ID stays the same.
	if spec.NetNS != "" {
		args = append([]string{"nsenter", "--net=/run/netns/" + spec.NetNS, "--"}, args...)
	}
	if spec.Cgroup != "" {
		args = append([]string{"/bin/sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, spec.Cgroup}, args...)
	}
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.process = command.Process
	p.starts++
	return command, nil
}

// Use replaces the spec of the next starts.
func (p *Program) Use(spec Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = spec
}

// Signal sends a signal to the process.
func (p *Program) Signal(signal syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", signal, p.Name, err)
	}
	return nil
}

// PID returns the ID of the process.
func (p *Program) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process.Pid
}

// Starts returns how often the program was started.
func (p *Program) Starts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

// Close ends the program, and kills it when ctx ends.
func (p *Program) Close(ctx context.Context) {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.stop)
	}
	// A stopped process does not handle SIGTERM.
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT} {
		_ = p.process.Signal(signal)
	}
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
	}
}

// Sample is what a process uses.
type Sample struct {
	Goroutines, Descriptors, Threads int
	// RSS is the memory in bytes, and Anonymous the part of it that is not of files.
	RSS, Anonymous uint64
	// Leads is whether the process is the leader of its program.
	Leads bool
	// Writes is the number of its requests to the API server since its start that are not reads. Those of an agent are its
	// reports and events: it does not count its requests.
	Writes float64
}

// Sample reads what the process uses now.
func (p *Program) Sample(ctx context.Context) (Sample, error) {
	process, err := procfs.NewProc(p.PID())
	if err != nil {
		return Sample{}, fmt.Errorf("find the process of %s: %w", p.Name, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return Sample{}, fmt.Errorf("read the memory of %s: %w", p.Name, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Sample{}, fmt.Errorf("read the threads of %s: %w", p.Name, err)
	}
	descriptors, err := process.FileDescriptorsLen()
	if err != nil {
		return Sample{}, fmt.Errorf("count the file descriptors of %s: %w", p.Name, err)
	}
	metrics, err := p.metrics(ctx)
	if err != nil {
		return Sample{}, fmt.Errorf("read the metrics of %s: %w", p.Name, err)
	}
	leads := false
	for _, metric := range metrics["leader_election_master_status"].GetMetric() {
		leads = leads || metric.GetGauge().GetValue() == 1
	}
	return Sample{
		Leads: leads, Goroutines: int(metrics["go_goroutines"].GetMetric()[0].GetGauge().GetValue()), Descriptors: descriptors,
		Threads: stat.NumThreads, RSS: status.VmRSS, Anonymous: status.RssAnon, Writes: writes(metrics),
	}, nil
}

// maxMetrics is the largest page of metrics that is read, in bytes.
const maxMetrics = 8 << 20

func (p *Program) metrics(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Metrics, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", p.Metrics, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", p.Metrics, err)
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(response.Body, maxMetrics))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", p.Metrics, err)
	}
	if len(families["go_goroutines"].GetMetric()) == 0 {
		return nil, fmt.Errorf("%s has no go_goroutines", p.Metrics)
	}
	return families, nil
}

// writes sums the requests that change something.
func writes(metrics map[string]*dto.MetricFamily) float64 {
	sum := 0.0
	for _, name := range []string{"seamark_agent_report_writes_total", "seamark_agent_status_writes_total", "seamark_agent_events_total"} {
		for _, metric := range metrics[name].GetMetric() {
			sum += metric.GetCounter().GetValue()
		}
	}
	for _, metric := range metrics["rest_client_requests_total"].GetMetric() {
		for _, pair := range metric.GetLabel() {
			if pair.GetName() == "method" && pair.GetValue() != http.MethodGet {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}
