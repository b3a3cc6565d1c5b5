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

	"github.com/seamark-dev/seamark/internal/metrics/agent"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := agent.New(registry)
	m.Watch(func() int { return 12 }, func() int { return 3 })
	m.Probed("exec", agent.ResultFailure, time.Second)
	m.Probed("exec", agent.ResultFailure, time.Second)
	m.Changed("Failed")
	m.Reported(100, nil)
	m.Reported(50, errors.New("away"))
	m.RuntimeCalled("ExecSync")
	m.EventWritten(nil)
	m.Waited(time.Second)
	want := `
# HELP seamark_agent_events_total Events on pods, by result: success, or error where the API server refused one.
# TYPE seamark_agent_events_total counter
seamark_agent_events_total{result="success"} 1
# HELP seamark_agent_exec_queue_length Exec probes that wait for a free place.
# TYPE seamark_agent_exec_queue_length gauge
seamark_agent_exec_queue_length 3
# HELP seamark_agent_planned_probes Probes in the plan that is in force.
# TYPE seamark_agent_planned_probes gauge
seamark_agent_planned_probes 12
# HELP seamark_agent_probes_total Runs of probes, by handler and by result: success, failure, or error where nothing could be told.
# TYPE seamark_agent_probes_total counter
seamark_agent_probes_total{handler="exec",result="failure"} 2
# HELP seamark_agent_report_bytes_total Bytes of all writes of the NodePodProbe's status.
# TYPE seamark_agent_report_bytes_total counter
seamark_agent_report_bytes_total 150
# HELP seamark_agent_report_writes_total Writes of the NodePodProbe's status, by result: success or error.
# TYPE seamark_agent_report_writes_total counter
seamark_agent_report_writes_total{result="error"} 1
seamark_agent_report_writes_total{result="success"} 1
# HELP seamark_agent_runtime_calls_total Calls to the container runtime, by method.
# TYPE seamark_agent_runtime_calls_total counter
seamark_agent_runtime_calls_total{method="ExecSync"} 1
# HELP seamark_agent_transitions_total Changes of a probe's state, by the new state.
# TYPE seamark_agent_transitions_total counter
seamark_agent_transitions_total{state="Failed"} 1
`
	names := []string{}
	for line := range strings.Lines(want) {
		if name, found := strings.CutPrefix(line, "# TYPE "); found {
			names = append(names, strings.Fields(name)[0])
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}
