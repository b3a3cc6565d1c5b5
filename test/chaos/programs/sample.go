// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

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
