// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the manager's own metrics: how often it writes, how long a report
// takes to become a mark and, read at each scrape, the states of the pods and the nodes
// whose agent does not run the latest plan. controller-runtime and client-go count queues,
// reconciles and requests. Label values are names of markers, probes and nodes, never pods.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seamark-dev/seamark/internal/marking/staleness"
)

// The values of the label operation of plan writes.
const (
	PlanCreated  = "create"
	PlanReplaced = "replace"
	PlanReferred = "refer"
	PlanDeleted  = "delete"
)

// The values of the label result of mark writes.
const (
	MarkWritten = "written"
	MarkGone    = "gone"
	MarkRefused = "refused"
	MarkFailed  = "failed"
)

// Metrics are the counters of the manager's work. No label value is an object's name.
type Metrics struct {
	registry prometheus.Registerer

	planWrites   *prometheus.CounterVec
	markWrites   *prometheus.CounterVec
	markLimits   prometheus.Counter
	releases     prometheus.Counter
	statusWrites prometheus.Counter
	reportToMark prometheus.Histogram
}

// New creates the metrics in registry. It panics if registry already has metrics of these
// names.
func New(registry prometheus.Registerer) *Metrics {
	factory := promauto.With(registry)
	m := &Metrics{
		registry: registry,
		planWrites: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_manager_plan_writes_total",
			Help: "Writes of ProbePlans and NodePodProbes by operation: create, replace (of a plan), refer (to ProbePlans) or delete.",
		}, []string{"operation"}),
		markWrites: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_manager_mark_writes_total",
			Help: "Applies of pod marks by result: written, gone (the pod no longer exists), refused (the API server refuses the marks of some probes, and the others are written) or failed.",
		}, []string{"result"}),
		markLimits: factory.NewCounter(prometheus.CounterOpts{
			Name: "seamark_manager_mark_writes_limited_total",
			Help: "Writes of pod marks that were delayed because the marks of the pod change again after each write, or too often.",
		}),
		releases: factory.NewCounter(prometheus.CounterOpts{
			Name: "seamark_manager_guard_releases_total",
			Help: "Pods that got the label seamark.dev/guard-exempt because their guards have reached seamark.dev/guard-max-duration.",
		}),
		statusWrites: factory.NewCounter(prometheus.CounterOpts{
			Name: "seamark_manager_marker_status_writes_total",
			Help: "Writes of PodProbeMarker status.",
		}),
		reportToMark: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "seamark_manager_report_to_mark_seconds",
			Help:    "Time from the arrival of a reported state at the manager to the write of the pod's marks.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
	for _, operation := range []string{PlanCreated, PlanReplaced, PlanReferred, PlanDeleted} {
		m.planWrites.WithLabelValues(operation)
	}
	for _, result := range []string{MarkWritten, MarkGone, MarkRefused, MarkFailed} {
		m.markWrites.WithLabelValues(result)
	}
	return m
}

// Watch creates the metrics that are read from the caches at each scrape, and the one
// with the constant label version.
func (m *Metrics) Watch(version string, caches Caches) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seamark_manager_info", Help: "Version of the manager; always 1.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	m.registry.MustRegister(newCollector(caches))
}

// WatchStale creates the metrics of stale states: nodes is the number of nodes whose states are not current,
// by cause, and waiting the number of pods that wait for their marks.
func (m *Metrics) WatchStale(nodes func(staleness.Cause) int, waiting func() int) {
	factory := promauto.With(m.registry)
	for _, cause := range staleness.Causes() {
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "seamark_manager_stale_nodes", ConstLabels: prometheus.Labels{"reason": string(cause)},
			Help: "Nodes whose states are not current, by reason: NodeGone, NodeNotReady, AgentNotReady or AgentGone. " +
				"Counted only if a marker has staleAfterSeconds or exclusive, by the leader.",
		}, func() float64 { return float64(nodes(cause)) })
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seamark_manager_stale_pods_waiting",
		Help: "Pods that wait for the marks of stale states, or of states that are current again: at most 100 per second get them.",
	}, func() float64 { return float64(waiting()) })
}

// WatchExclusive creates the metric of pods that have waited long for exclusive marks.
func (m *Metrics) WatchExclusive(waiting func() int) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seamark_manager_exclusive_pods_waiting",
		Help: "Pods that have waited for exclusive marks for 5 seconds or longer, because another pod still has them or may get them.",
	}, func() float64 { return float64(waiting()) })
}

// PlanWritten counts a write of a ProbePlan or NodePodProbe.
func (m *Metrics) PlanWritten(operation string) { m.planWrites.WithLabelValues(operation).Inc() }

// MarksApplied counts an apply of a pod's marks.
func (m *Metrics) MarksApplied(result string) { m.markWrites.WithLabelValues(result).Inc() }

// MarksLimited counts a write of a pod's marks that is delayed.
func (m *Metrics) MarksLimited() { m.markLimits.Inc() }

// GuardReleased counts a pod that is released from its guards.
func (m *Metrics) GuardReleased() { m.releases.Inc() }

// StatusWritten counts a write of a marker's status.
func (m *Metrics) StatusWritten() { m.statusWrites.Inc() }

// Marked records how long a reported state took to become a mark.
func (m *Metrics) Marked(took time.Duration) { m.reportToMark.Observe(took.Seconds()) }
