// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent holds the agent's metrics. Their labels are bounded by what the program
// knows: its node, handlers, results, states and runtime methods. Pods and markers are none.
package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probe"
)

// Result is what came of a probe's run, a write or a call, as a label value.
type Result string

// The results. A run has all of them, everything else ResultSuccess and ResultError.
const (
	// ResultSuccess is a run that the container passed, or a write or call that was done.
	ResultSuccess Result = "success"
	// ResultFailure is a run that the container failed, within its timeout.
	ResultFailure Result = "failure"
	// ResultTimeout is a run that ended without an answer at its timeout.
	ResultTimeout Result = "timeout"
	// ResultError is a run, a write or a call that could not be done.
	ResultError Result = "error"
)

// Metrics are the agent's metrics. They are safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer

	probes          *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	queueWait       prometheus.Histogram
	transitions     *prometheus.CounterVec
	reports         *prometheus.CounterVec
	reportSize      prometheus.Histogram
	lastReport      prometheus.Gauge
	runtimeCalls    *prometheus.CounterVec
	runtimeDuration *prometheus.HistogramVec
	events          *prometheus.CounterVec
}

// New makes the metrics and registers them. It panics where registry has them already.
// Counters whose labels are known start at zero, so that their first increase shows.
func New(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: registry,
		probes: counters("seamark_agent_probes_total",
			"Runs of probes, by handler and result: success, failure, timeout, or error where nothing could be told.",
			"handler", "result"),
		duration: histograms("seamark_agent_probe_duration_seconds",
			"Duration of one run of a probe, the wait for a free place included.", runBuckets(), "handler"),
		queueWait: histogram("seamark_agent_exec_queue_wait_seconds",
			"Time that exec probes wait for a free place.", runBuckets()),
		transitions: counters("seamark_agent_transitions_total",
			"Changes of a probe's state, by the new state.", "state"),
		reports: counters("seamark_agent_report_writes_total",
			"Writes of the NodePodProbe's status, by result: success or error.", "result"),
		reportSize: histogram("seamark_agent_report_size_bytes",
			"Size of the writes of the NodePodProbe's status.", prometheus.ExponentialBuckets(256, 4, 7)),
		lastReport: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "seamark_agent_last_report_timestamp_seconds",
			Help: "When the NodePodProbe's status was last written, as Unix time; 0 before the first write.",
		}),
		runtimeCalls: counters("seamark_agent_runtime_calls_total",
			"Calls to the container runtime, by method and result: success, or error, which includes commands that time out.",
			"method", "result"),
		runtimeDuration: histograms("seamark_agent_runtime_call_duration_seconds",
			"Time until the container runtime answers a call, by method; of a stream, until it is open.",
			runBuckets(), "method"),
		events: counters("seamark_agent_events_total",
			"Events on pods, by result: success, or error where the API server refused one.", "result"),
	}
	m.start()
	registry.MustRegister(m.probes, m.duration, m.queueWait, m.transitions, m.reports, m.reportSize, m.lastReport,
		m.runtimeCalls, m.runtimeDuration, m.events)
	return m
}

// start makes the series of all label values that are known.
func (m *Metrics) start() {
	for _, handler := range probe.Handlers() {
		for _, result := range []Result{ResultSuccess, ResultFailure, ResultTimeout, ResultError} {
			m.probes.WithLabelValues(string(handler), string(result))
		}
	}
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown} {
		m.transitions.WithLabelValues(string(state))
	}
	for _, result := range []Result{ResultSuccess, ResultError} {
		m.reports.WithLabelValues(string(result))
		m.events.WithLabelValues(string(result))
	}
}

// Now is what the agent reads its gauges from, at each scrape.
type Now struct {
	// Planned is how many probes are planned, and Generation that of the plan in force.
	Planned, Generation func() int64
	// Queued is how many exec probes wait for a free place.
	Queued func() int
}

// Watch registers what is read at each scrape, and what stays the same: the node that
// the agent serves and its version.
func (m *Metrics) Watch(node, version string, now Now) {
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read))
	}
	gauge("seamark_agent_info", "The agent's node and version; always 1.",
		prometheus.Labels{"node": node, "version": version}, func() float64 { return 1 })
	gauge("seamark_agent_planned_probes", "Probes in the newest plan.", nil,
		func() float64 { return float64(now.Planned()) })
	gauge("seamark_agent_plan_generation", "Generation of the plan that is in force; 0 before the first.", nil,
		func() float64 { return float64(now.Generation()) })
	gauge("seamark_agent_exec_queue_length", "Exec probes that wait for a free place.", nil,
		func() float64 { return float64(now.Queued()) })
}

// Probed counts one run of a probe.
func (m *Metrics) Probed(handler probe.Handler, result Result, took time.Duration) {
	m.probes.WithLabelValues(string(handler), string(result)).Inc()
	m.duration.WithLabelValues(string(handler)).Observe(took.Seconds())
}

// Waited counts the time that an exec probe waited for a free place.
func (m *Metrics) Waited(d time.Duration) { m.queueWait.Observe(d.Seconds()) }

// Changed counts a change to a state.
func (m *Metrics) Changed(state string) { m.transitions.WithLabelValues(state).Inc() }

// Reported counts one write of a status of a size in bytes.
func (m *Metrics) Reported(bytes int, err error) {
	m.reports.WithLabelValues(string(resultOf(err))).Inc()
	m.reportSize.Observe(float64(bytes))
	if err == nil {
		m.lastReport.SetToCurrentTime()
	}
}

// RuntimeCalled counts a call to the container runtime.
func (m *Metrics) RuntimeCalled(method string, took time.Duration, err error) {
	m.runtimeCalls.WithLabelValues(method, string(resultOf(err))).Inc()
	m.runtimeDuration.WithLabelValues(method).Observe(took.Seconds())
}

// EventWritten counts an event on a pod.
func (m *Metrics) EventWritten(err error) { m.events.WithLabelValues(string(resultOf(err))).Inc() }

func resultOf(err error) Result {
	if err != nil {
		return ResultError
	}
	return ResultSuccess
}

// runBuckets are for what takes from half a millisecond to half a minute.
func runBuckets() []float64 { return prometheus.ExponentialBuckets(0.0005, 2.5, 12) }

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}
