// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/pace"
	"github.com/seamark-dev/seamark/test/expect"
)

// all creates every metric, with at least one series each.
func all(t *testing.T) (*prometheus.Registry, *metrics.Metrics) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m := metrics.New(registry)
	number := func(n int64) func() int64 { return func() int64 { return n } }
	count := func(n int) func() int { return func() int { return n } }
	errs := func(v1alpha1.ProbeErrorReason) int { return 4 }
	m.Watch(
		"node-1", "v1", metrics.Now{
			Planned: number(12), Generation: number(7), Queued: count(3), NetworkQueued: count(5), Unended: count(2),
			Undescribed: count(2), Errors: errs, Slices: count(14),
		},
	)
	m.RuntimeCalled("ExecSync", time.Second, errors.New("unavailable"))
	return registry, m
}

func TestMetrics(t *testing.T) {
	registry, m := all(t)
	m.Probed(probing.HandlerExec, metrics.ResultTimeout, time.Second)
	m.Probed(probing.HandlerExec, metrics.ResultTimeout, time.Second)
	m.Changed("Failed")
	m.Reported(100, time.Second, nil)
	m.Reported(5000, time.Second, errors.New("unavailable"))
	m.Reported(0, time.Second, nil)
	m.WroteStatus(nil)
	m.EventWritten(nil)
	m.Waited(time.Second)
	m.Unended()
	m.RateLimited(pace.LimitPod)
	families, err := registry.Gather()
	expect.NoError(t, err)
	var got []string
	for _, family := range families {
		var text strings.Builder
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_seconds") {
				got = append(got, strings.TrimSpace(line))
			}
		}
	}
	got = slices.DeleteFunc(got, func(line string) bool {
		return strings.HasPrefix(line, "seamark_agent_probes_total") && strings.HasSuffix(line, " 0")
	})
	if diff := cmp.Diff([]string{
		`seamark_agent_events_total{result="error"} 0`,
		`seamark_agent_events_total{result="success"} 1`,
		`seamark_agent_exec_queue_length 3`,
		`seamark_agent_exec_unended_runs 2`,
		`seamark_agent_exec_unended_total 1`,
		`seamark_agent_info{node="node-1",version="v1"} 1`,
		`seamark_agent_network_queue_length 5`,
		`seamark_agent_plan_generation 7`,
		`seamark_agent_planned_probes 12`,
		`seamark_agent_probe_errors{reason="CannotRun"} 4`,
		`seamark_agent_probe_errors{reason="NotEnded"} 4`,
		`seamark_agent_probe_errors{reason="RateLimited"} 4`,
		`seamark_agent_probe_errors{reason="WaitingForSlot"} 4`,
		`seamark_agent_probes_total{handler="exec",result="timeout"} 2`,
		`seamark_agent_rate_limited_runs_total{limit="node"} 0`,
		`seamark_agent_rate_limited_runs_total{limit="pod"} 1`,
		`seamark_agent_report_size_bytes_bucket{le="256"} 1`,
		`seamark_agent_report_size_bytes_bucket{le="1024"} 1`,
		`seamark_agent_report_size_bytes_bucket{le="4096"} 1`,
		`seamark_agent_report_size_bytes_bucket{le="16384"} 2`,
		`seamark_agent_report_size_bytes_bucket{le="65536"} 2`,
		`seamark_agent_report_size_bytes_bucket{le="262144"} 2`,
		`seamark_agent_report_size_bytes_bucket{le="1.048576e+06"} 2`,
		`seamark_agent_report_size_bytes_bucket{le="+Inf"} 2`,
		`seamark_agent_report_size_bytes_sum 5100`,
		`seamark_agent_report_size_bytes_count 2`,
		`seamark_agent_report_writes_total{result="error"} 1`,
		`seamark_agent_report_writes_total{result="success"} 2`,
		`seamark_agent_reports 14`,
		`seamark_agent_runtime_calls_total{method="ExecSync",result="error"} 1`,
		`seamark_agent_status_writes_total{result="error"} 0`,
		`seamark_agent_status_writes_total{result="success"} 1`,
		`seamark_agent_transitions_total{state="Failed"} 1`,
		`seamark_agent_transitions_total{state="Succeeded"} 0`,
		`seamark_agent_transitions_total{state="Unknown"} 0`,
		`seamark_agent_undescribed_containers 2`,
	}, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// TestProbeRunsStartAtZero checks that all series exist from the start: Prometheus does not
// see the first increase of a series that starts above zero.
func TestProbeRunsStartAtZero(t *testing.T) {
	registry, _ := all(t)
	if n, err := testutil.GatherAndCount(registry, "seamark_agent_probes_total"); err != nil || n != 5*4 {
		t.Errorf("%d series, error %v, want 5 handlers with 4 results each", n, err)
	}
}

func TestLastReport(t *testing.T) {
	registry, m := all(t)
	last := func() float64 {
		families, err := registry.Gather()
		expect.NoError(t, err)
		for _, family := range families {
			if family.GetName() == "seamark_agent_last_report_timestamp_seconds" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no metric seamark_agent_last_report_timestamp_seconds")
		return 0
	}
	m.Reported(1, time.Second, errors.New("unavailable"))
	expect.Equal(t, "last report after a failed write", 0, last())
	before := float64(time.Now().Unix())
	m.Reported(1, time.Second, nil)
	if got := last(); got < before {
		t.Errorf("last report at %v, want %v or later", got, before)
	}
}

func TestLint(t *testing.T) {
	registry, _ := all(t)
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
