// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager holds the metrics that are the manager's own: how often it writes, how
// long a report takes to become a mark, and, read at each scrape, in which states the pods
// are and which plans are in force. Queues, reconciles and requests are counted by
// controller-runtime and client-go. Labels name markers, probes and nodes, never pods.
package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The values of the label operation of plan writes.
const (
	PlanCreated  = "create"
	PlanReplaced = "replace"
	PlanDeleted  = "delete"
)

// The values of the label result of mark writes.
const (
	MarkWritten = "written"
	MarkGone    = "gone"
	MarkFailed  = "failed"
)

// Metrics are what the manager counts as it works. No label holds the name of an object.
type Metrics struct {
	planWrites   *prometheus.CounterVec
	markWrites   *prometheus.CounterVec
	statusWrites prometheus.Counter
	reportToMark prometheus.Histogram
}

// New makes the metrics and registers them. It returns an error where the registry
// has metrics of these names.
func New(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		planWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_manager_plan_writes_total",
			Help: "NodePodProbes that the manager created, replaced the plan of, or deleted.",
		}, []string{"operation"}),
		markWrites: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_manager_mark_writes_total",
			Help: "Applies of a pod's marks: written, refused because the pod is gone, or failed.",
		}, []string{"result"}),
		statusWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "seamark_manager_marker_status_writes_total",
			Help: "Writes of a PodProbeMarker's status.",
		}),
		reportToMark: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "seamark_manager_report_to_mark_seconds",
			Help:    "Time from a reported state's arrival at the manager to the write of the pod's marks.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}),
	}
	for _, operation := range []string{PlanCreated, PlanReplaced, PlanDeleted} {
		m.planWrites.WithLabelValues(operation)
	}
	for _, result := range []string{MarkWritten, MarkGone, MarkFailed} {
		m.markWrites.WithLabelValues(result)
	}
	err := errors.Join(
		registry.Register(m.planWrites), registry.Register(m.markWrites),
		registry.Register(m.statusWrites), registry.Register(m.reportToMark),
	)
	if err != nil {
		return nil, fmt.Errorf("registering the manager's metrics: %w", err)
	}
	return m, nil
}

// Info returns the metric that tells the program's version, to be registered.
func Info(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seamark_manager_info", Help: "The manager's version; always 1.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
}

// PlanWritten counts a write of a NodePodProbe.
func (m *Metrics) PlanWritten(operation string) { m.planWrites.WithLabelValues(operation).Inc() }

// MarksApplied counts an apply of a pod's marks.
func (m *Metrics) MarksApplied(result string) { m.markWrites.WithLabelValues(result).Inc() }

// StatusWritten counts a write of a marker's status.
func (m *Metrics) StatusWritten() { m.statusWrites.Inc() }

// Marked records how long a reported state took to become a mark.
func (m *Metrics) Marked(took time.Duration) { m.reportToMark.Observe(took.Seconds()) }
