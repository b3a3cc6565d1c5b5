// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/agent/metrics"
	"github.com/seamark-dev/seamark/internal/probing"
)

// all creates every metric, with at least one series each.
func all(t *testing.T) (*prometheus.Registry, *agent.Metrics) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m := agent.New(registry)
	number := func(n int64) func() int64 { return func() int64 { return n } }
	count := func(n int) func() int { return func() int { return n } }
	errs := func(v1alpha1.ProbeErrorReason) int { return 4 }
	m.Watch("node-1", "v1", agent.Now{Planned: number(12), Generation: number(7), Queued: count(3), NetworkQueued: count(5), Unended: count(2), Undescribed: count(2), Errors: errs, Slices: count(14)})
	m.RuntimeCalled("ExecSync", time.Second, errors.New("unavailable"))
	return registry, m
}

func TestMetrics(t *testing.T) {
	registry, m := all(t)
	m.Probed(probe.HandlerExec, agent.ResultTimeout, time.Second)
	m.Probed(probe.HandlerExec, agent.ResultTimeout, time.Second)
	m.Changed("Failed")
	m.Reported(100, time.Second, nil)
	m.Reported(5000, time.Second, errors.New("unavailable"))
	m.Reported(0, time.Second, nil)
	m.WroteStatus(nil)
	m.EventWritten(nil)
	m.Waited(time.Second)
	m.Unended()
	const want = `
# HELP seamark_agent_events_total Events written for pods by result: success, or error if the API server rejected the event.
# TYPE seamark_agent_events_total counter
seamark_agent_events_total{result="error"} 0
seamark_agent_events_total{result="success"} 1
# HELP seamark_agent_exec_queue_length Exec probes that wait for a free exec slot.
# TYPE seamark_agent_exec_queue_length gauge
seamark_agent_exec_queue_length 3
# HELP seamark_agent_exec_unended_runs Exec probe runs that were given up and that the container runtime has not ended yet.
# TYPE seamark_agent_exec_unended_runs gauge
seamark_agent_exec_unended_runs 2
# HELP seamark_agent_exec_unended_total Exec probe runs that the container runtime had not ended one second after their timeout.
# TYPE seamark_agent_exec_unended_total counter
seamark_agent_exec_unended_total 1
# HELP seamark_agent_info Node and version of the agent; always 1.
# TYPE seamark_agent_info gauge
seamark_agent_info{node="node-1",version="v1"} 1
# HELP seamark_agent_network_queue_length Network probes that wait for a free network slot.
# TYPE seamark_agent_network_queue_length gauge
seamark_agent_network_queue_length 5
# HELP seamark_agent_plan_generation Generation of the plan that the agent is running; 0 before the first plan.
# TYPE seamark_agent_plan_generation gauge
seamark_agent_plan_generation 7
# HELP seamark_agent_planned_probes Probes in the latest plan.
# TYPE seamark_agent_planned_probes gauge
seamark_agent_planned_probes 12
# HELP seamark_agent_probe_errors Probes that have no current result, by reason: CannotRun, NotEnded or WaitingForSlot.
# TYPE seamark_agent_probe_errors gauge
seamark_agent_probe_errors{reason="CannotRun"} 4
seamark_agent_probe_errors{reason="NotEnded"} 4
seamark_agent_probe_errors{reason="WaitingForSlot"} 4
# HELP seamark_agent_report_size_bytes Size of ProbeReport writes.
# TYPE seamark_agent_report_size_bytes histogram
seamark_agent_report_size_bytes_bucket{le="256"} 1
seamark_agent_report_size_bytes_bucket{le="1024"} 1
seamark_agent_report_size_bytes_bucket{le="4096"} 1
seamark_agent_report_size_bytes_bucket{le="16384"} 2
seamark_agent_report_size_bytes_bucket{le="65536"} 2
seamark_agent_report_size_bytes_bucket{le="262144"} 2
seamark_agent_report_size_bytes_bucket{le="1.048576e+06"} 2
seamark_agent_report_size_bytes_bucket{le="+Inf"} 2
seamark_agent_report_size_bytes_sum 5100
seamark_agent_report_size_bytes_count 2
# HELP seamark_agent_report_writes_total Writes of ProbeReports by result: success or error.
# TYPE seamark_agent_report_writes_total counter
seamark_agent_report_writes_total{result="error"} 1
seamark_agent_report_writes_total{result="success"} 2
# HELP seamark_agent_reports ProbeReports that the agent has written and not deleted.
# TYPE seamark_agent_reports gauge
seamark_agent_reports 14
# HELP seamark_agent_runtime_calls_total Calls to the container runtime by method and result: success or error. A command that times out counts as an error.
# TYPE seamark_agent_runtime_calls_total counter
seamark_agent_runtime_calls_total{method="ExecSync",result="error"} 1
# HELP seamark_agent_status_writes_total Writes of the NodePodProbe status, which reports the plan in force, by result: success or error.
# TYPE seamark_agent_status_writes_total counter
seamark_agent_status_writes_total{result="error"} 0
seamark_agent_status_writes_total{result="success"} 1
# HELP seamark_agent_transitions_total Probe state transitions by new state.
# TYPE seamark_agent_transitions_total counter
seamark_agent_transitions_total{state="Failed"} 1
seamark_agent_transitions_total{state="Succeeded"} 0
seamark_agent_transitions_total{state="Unknown"} 0
# HELP seamark_agent_undescribed_containers Containers whose status the runtime does not return; their probes are paused.
# TYPE seamark_agent_undescribed_containers gauge
seamark_agent_undescribed_containers 2
`
	var names []string
	for line := range strings.Lines(want) {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			names = append(names, strings.Fields(name)[0])
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// TestProbeRunsStartAtZero checks that all series exist from the start: Prometheus does not
// see the first increase of a series that starts above zero.
func TestProbeRunsStartAtZero(t *testing.T) {
	registry, _ := all(t)
	if n, err := testutil.GatherAndCount(registry, "seamark_agent_probes_total"); err != nil || n != 4*4 {
		t.Errorf("%d series, error %v, want 4 handlers with 4 results each", n, err)
	}
}

func TestLastReport(t *testing.T) {
	registry, m := all(t)
	last := func() float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "seamark_agent_last_report_timestamp_seconds" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no metric seamark_agent_last_report_timestamp_seconds")
		return 0
	}
	m.Reported(1, time.Second, errors.New("unavailable"))
	if got := last(); got != 0 {
		t.Errorf("last report at %v after a failed write, want 0", got)
	}
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
