// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent holds the agent's metrics. Their labels are bounded by what the program
// knows: handlers, results, states and runtime methods. Pods and markers are none.
package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The results of a probe's run, as label values.
const (
	// ResultSuccess is a run that the container passed.
	ResultSuccess = "success"
	// ResultFailure is a run that the container failed.
	ResultFailure = "failure"
	// ResultError is a run, or a write, that could not be done.
	ResultError = "error"
)

// Metrics are the agent's counters. They are safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer

	probes       *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	queueWait    prometheus.Histogram
	transitions  *prometheus.CounterVec
	reports      *prometheus.CounterVec
	reportBytes  prometheus.Counter
	runtimeCalls *prometheus.CounterVec
	events       *prometheus.CounterVec
}

// New makes the metrics and registers them. It panics where registry has them already.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: registry,
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_agent_probes_total",
			Help: "Runs of probes, by handler and by result: success, failure, or error where nothing could be told.",
		}, []string{"handler", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "seamark_agent_probe_duration_seconds",
			Help:    "Duration of one run of a probe, the wait for a free place included.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}, []string{"handler"}),
		queueWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "seamark_agent_exec_queue_wait_seconds",
			Help:    "Time that exec probes wait for a free place.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_agent_transitions_total",
			Help: "Changes of a probe's state, by the new state.",
		}, []string{"state"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_agent_report_writes_total",
			Help: "Writes of the NodePodProbe's status, by result: success or error.",
		}, []string{"result"}),
		reportBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "seamark_agent_report_bytes_total",
			Help: "Bytes of all writes of the NodePodProbe's status.",
		}),
		runtimeCalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_agent_runtime_calls_total",
			Help: "Calls to the container runtime, by method.",
		}, []string{"method"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_agent_events_total",
			Help: "Events on pods, by result: success, or error where the API server refused one.",
		}, []string{"result"}),
	}
	registry.MustRegister(m.probes, m.duration, m.queueWait, m.transitions, m.reports, m.reportBytes, m.runtimeCalls, m.events)
	return m
}

// Watch registers gauges that are read at each scrape: how many probes are planned, and
// how many exec probes wait for a free place.
func (m *Metrics) Watch(planned, queued func() int) {
	gauge := func(name, help string, read func() int) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
	}
	gauge("seamark_agent_planned_probes", "Probes in the plan that is in force.", planned)
	gauge("seamark_agent_exec_queue_length", "Exec probes that wait for a free place.", queued)
}

// Probed counts one run of a probe.
func (m *Metrics) Probed(handler, result string, took time.Duration) {
	m.probes.WithLabelValues(handler, result).Inc()
	m.duration.WithLabelValues(handler).Observe(took.Seconds())
}

// Waited counts the time that an exec probe waited for a free place.
func (m *Metrics) Waited(d time.Duration) { m.queueWait.Observe(d.Seconds()) }

// Changed counts a change to a state.
func (m *Metrics) Changed(state string) { m.transitions.WithLabelValues(state).Inc() }

// Reported counts one write of a status of a size in bytes.
func (m *Metrics) Reported(bytes int, err error) {
	m.reports.WithLabelValues(resultOf(err)).Inc()
	m.reportBytes.Add(float64(bytes))
}

// RuntimeCalled counts a call to the container runtime.
func (m *Metrics) RuntimeCalled(method string) { m.runtimeCalls.WithLabelValues(method).Inc() }

// EventWritten counts an event on a pod.
func (m *Metrics) EventWritten(err error) { m.events.WithLabelValues(resultOf(err)).Inc() }

func resultOf(err error) string {
	if err != nil {
		return ResultError
	}
	return ResultSuccess
}
