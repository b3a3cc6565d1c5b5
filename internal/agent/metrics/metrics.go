// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the agent's metrics. The label values are bounded: node, handlers,
// results, states and runtime methods, never pods or markers.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/probing/pace"
)

// Result is the label value for the result of a probe run, a write or a call.
type Result string

// The results. A probe run can have any of them, a write or call only ResultSuccess and
// ResultError.
const (
	// ResultSuccess is a run that succeeded, or a completed write or call.
	ResultSuccess Result = "success"
	// ResultFailure is a run that failed within its timeout.
	ResultFailure Result = "failure"
	// ResultTimeout is a run that got no response within its timeout.
	ResultTimeout Result = "timeout"
	// ResultError is a run whose result could not be determined, or a write or call that
	// failed.
	ResultError Result = "error"
)

// HandlerStartup is the label value for runs of the startup probes of containers, whatever their
// handlers.
const HandlerStartup probing.Handler = "startup"

// Metrics are the agent's metrics. They are safe for concurrent use.
type Metrics struct {
	factory promauto.Factory

	probes          *prometheus.CounterVec
	duration        *prometheus.HistogramVec
	queueWait       prometheus.Histogram
	networkWait     prometheus.Histogram
	unended         prometheus.Counter
	slowed          *prometheus.CounterVec
	transitions     *prometheus.CounterVec
	reports         *prometheus.CounterVec
	reportSize      prometheus.Histogram
	reportDuration  prometheus.Histogram
	statuses        *prometheus.CounterVec
	lastReport      prometheus.Gauge
	runtimeCalls    *prometheus.CounterVec
	runtimeDuration *prometheus.HistogramVec
	events          *prometheus.CounterVec
}

// New creates the metrics in registry. It panics if registry already has metrics of these
// names. Counters whose label values are known start at zero, so that their first increase
// is visible.
func New(registry prometheus.Registerer) *Metrics {
	factory := promauto.With(registry)
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		factory: factory,
		probes: counters("seamark_agent_probes_total",
			"Probe runs by handler, which is startup for startup probes of containers, and result: success, failure, timeout, or error if the result could not be determined.",
			"handler", "result"),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seamark_agent_probe_duration_seconds",
			Help: "Duration of a probe run, including the wait for a free slot.", Buckets: runBuckets(),
		}, []string{"handler"}),
		queueWait: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "seamark_agent_exec_queue_wait_seconds",
			Help: "Time that exec probes wait for a free exec slot.", Buckets: runBuckets(),
		}),
		networkWait: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "seamark_agent_network_queue_wait_seconds",
			Help: "Time that network probes wait for a free network slot.", Buckets: runBuckets(),
		}),
		unended: factory.NewCounter(prometheus.CounterOpts{
			Name: "seamark_agent_exec_unended_total",
			Help: "Exec probe runs that the container runtime had not ended one second after their timeout.",
		}),
		slowed: counters("seamark_agent_rate_limited_runs_total",
			"Probe runs that began a period or more too late, by the rate that was exceeded: that of the pod or of the node.", "limit"),
		transitions: counters("seamark_agent_transitions_total", "Probe state transitions by new state.", "state"),
		reports: counters("seamark_agent_report_writes_total",
			"Writes of ProbeReports by result: success or error.", "result"),
		reportSize: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "seamark_agent_report_size_bytes",
			Help: "Size of ProbeReport writes.", Buckets: prometheus.ExponentialBuckets(256, 4, 7),
		}),
		reportDuration: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "seamark_agent_report_write_duration_seconds",
			Help: "Duration of writes of ProbeReports.", Buckets: runBuckets(),
		}),
		lastReport: factory.NewGauge(prometheus.GaugeOpts{
			Name: "seamark_agent_last_report_timestamp_seconds",
			Help: "Unix time of the last write of a ProbeReport; 0 before the first write.",
		}),
		statuses: counters("seamark_agent_status_writes_total",
			"Writes of the NodePodProbe status, which reports the plan in force, by result: success or error.", "result"),
		runtimeCalls: counters("seamark_agent_runtime_calls_total",
			"Calls to the container runtime by method and result: success or error. A command that times out counts as an error.",
			"method", "result"),
		runtimeDuration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seamark_agent_runtime_call_duration_seconds",
			Help: "Duration of calls to the container runtime by method; for a stream, the time until it is open.", Buckets: runBuckets(),
		}, []string{"method"}),
		events: counters("seamark_agent_events_total",
			"Events written for pods by result: success, or error if the API server rejected the event.", "result"),
	}
	m.start()
	return m
}

// start creates the series of all known label values, except the histograms: they have many series,
// and most nodes do not use all handlers.
func (m *Metrics) start() {
	for _, handler := range append(probing.Handlers(), HandlerStartup) {
		for _, result := range []Result{ResultSuccess, ResultFailure, ResultTimeout, ResultError} {
			m.probes.WithLabelValues(string(handler), string(result))
		}
	}
	for _, state := range []v1alpha1.ProbeState{v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown} {
		m.transitions.WithLabelValues(string(state))
	}
	for _, limit := range []pace.Limit{pace.LimitPod, pace.LimitNode} {
		m.slowed.WithLabelValues(string(limit))
	}
	for _, result := range []Result{ResultSuccess, ResultError} {
		m.reports.WithLabelValues(string(result))
		m.statuses.WithLabelValues(string(result))
		m.events.WithLabelValues(string(result))
	}
}

// Now holds the functions that provide the values of gauges at each scrape.
type Now struct {
	// Planned returns the number of planned probes, Generation the generation of the plan
	// that the agent is running.
	Planned, Generation func() int64
	// Queued returns the number of exec probes that wait for a free exec slot.
	Queued func() int
	// NetworkQueued returns the number of network probes that wait for a free network slot.
	NetworkQueued func() int
	// Unended returns the number of runs that were given up and that the runtime has not
	// ended.
	Unended func() int
	// Errors returns the number of probes with a reported error, by reason.
	Errors func(v1alpha1.ProbeErrorReason) int
	// Slices returns the number of stored ProbeReports.
	Slices func() int
	// Undescribed returns the number of containers that the runtime cannot describe.
	Undescribed func() int
}

// Watch creates the metrics that are read at each scrape, and the one with the constant
// labels node and version.
func (m *Metrics) Watch(node, version string, now Now) {
	gauge := func(name, help string, labels prometheus.Labels, read func() float64) {
		m.factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, read)
	}
	gauge("seamark_agent_info", "Node and version of the agent; always 1.",
		prometheus.Labels{"node": node, "version": version}, func() float64 { return 1 })
	gauge("seamark_agent_planned_probes", "Probes in the latest plan.", nil,
		func() float64 { return float64(now.Planned()) })
	gauge("seamark_agent_plan_generation", "Generation of the plan that the agent is running; 0 before the first plan.", nil,
		func() float64 { return float64(now.Generation()) })
	gauge("seamark_agent_exec_queue_length", "Exec probes that wait for a free exec slot.", nil,
		func() float64 { return float64(now.Queued()) })
	gauge("seamark_agent_network_queue_length", "Network probes that wait for a free network slot.", nil,
		func() float64 { return float64(now.NetworkQueued()) })
	gauge("seamark_agent_exec_unended_runs", "Exec probe runs that were given up and that the container runtime has not ended yet.", nil,
		func() float64 { return float64(now.Unended()) })
	for _, reason := range v1alpha1.ProbeErrorReasons() {
		gauge("seamark_agent_probe_errors",
			"Probes that have no current result, or fewer than their periods ask for, by reason: CannotRun, NotEnded, RateLimited or WaitingForSlot.",
			prometheus.Labels{"reason": string(reason)}, func() float64 { return float64(now.Errors(reason)) })
	}
	gauge("seamark_agent_reports", "ProbeReports that the agent has written and not deleted.", nil,
		func() float64 { return float64(now.Slices()) })
	gauge("seamark_agent_undescribed_containers",
		"Containers whose status the runtime does not return; their probes are paused.", nil,
		func() float64 { return float64(now.Undescribed()) })
}

// Probed counts a probe run.
func (m *Metrics) Probed(handler probing.Handler, result Result, took time.Duration) {
	m.probes.WithLabelValues(string(handler), string(result)).Inc()
	m.duration.WithLabelValues(string(handler)).Observe(took.Seconds())
}

// Waited records how long an exec probe waited for a free exec slot.
func (m *Metrics) Waited(d time.Duration) { m.queueWait.Observe(d.Seconds()) }

// WaitedForNetwork records how long a network probe waited for a free network slot.
func (m *Metrics) WaitedForNetwork(d time.Duration) { m.networkWait.Observe(d.Seconds()) }

// Unended counts a run that the runtime had not ended when it was given up.
func (m *Metrics) Unended() { m.unended.Inc() }

// RateLimited counts a run that began a period or more too late because of a limit.
func (m *Metrics) RateLimited(limit pace.Limit) { m.slowed.WithLabelValues(string(limit)).Inc() }

// Changed counts a transition to a state.
func (m *Metrics) Changed(state string) { m.transitions.WithLabelValues(state).Inc() }

// Reported counts a write of a ProbeReport. It records its duration and its size in bytes, which
// is 0 for a deletion.
func (m *Metrics) Reported(bytes int, took time.Duration, err error) {
	m.reports.WithLabelValues(string(resultOf(err))).Inc()
	m.reportDuration.Observe(took.Seconds())
	if bytes > 0 {
		m.reportSize.Observe(float64(bytes))
	}
	if err == nil {
		m.lastReport.SetToCurrentTime()
	}
}

// WroteStatus counts a write of the NodePodProbe status.
func (m *Metrics) WroteStatus(err error) { m.statuses.WithLabelValues(string(resultOf(err))).Inc() }

// RuntimeCalled counts a call to the container runtime.
func (m *Metrics) RuntimeCalled(method string, took time.Duration, err error) {
	m.runtimeCalls.WithLabelValues(method, string(resultOf(err))).Inc()
	m.runtimeDuration.WithLabelValues(method).Observe(took.Seconds())
}

// EventWritten counts an event for a pod.
func (m *Metrics) EventWritten(err error) { m.events.WithLabelValues(string(resultOf(err))).Inc() }

func resultOf(err error) Result {
	if err != nil {
		return ResultError
	}
	return ResultSuccess
}

// runBuckets range from 0.5 ms to about 12 s.
func runBuckets() []float64 { return prometheus.ExponentialBuckets(0.0005, 2.5, 12) }
