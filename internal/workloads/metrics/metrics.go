// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the metrics of seamark-workloads: what it writes and why, what fails, and,
// read at each scrape, the pods of all sets by kind. controller-runtime and client-go count queues,
// reconciles and requests. No label value is the name of a set or a pod.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/seamark-dev/seamark/internal/program/kinds"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
)

// Metrics are the counters of the program's work.
type Metrics struct {
	registry prometheus.Registerer

	writes       *prometheus.CounterVec
	failures     *prometheus.CounterVec
	waits        *prometheus.CounterVec
	statusWrites *prometheus.CounterVec
	yielding     *prometheus.GaugeVec
}

// New creates the metrics in registry, with zero for each kind whose objects create pods or Jobs. It panics if registry already
// has metrics of these names.
func New(registry prometheus.Registerer) *Metrics {
	factory := promauto.With(registry)
	m := &Metrics{
		registry: registry,
		writes: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_workloads_writes_total",
			Help: "Successful writes to pods, persistent volume claims and controller revisions, by operation and reason.",
		}, []string{"object", "operation", "reason"}),
		failures: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_workloads_write_failures_total",
			Help: "Writes for sets of a kind that the API server refused or did not answer. Conflicts do not count.",
		}, []string{"kind"}),
		waits: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_workloads_cache_waits_total",
			Help: "Reconciles of sets of a kind that waited because the cache did not have the set's own writes yet.",
		}, []string{"kind"}),
		statusWrites: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "seamark_workloads_status_writes_total",
			Help: "Writes of the status of sets of a kind.",
		}, []string{"kind"}),
		yielding: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "seamark_workloads_yielding",
			Help: "1 while the controller of a kind does nothing because OpenKruise's manager serves the kind, otherwise 0.",
		}, []string{"kind"}),
	}
	for _, kind := range kinds.Table() {
		if kind.Role != kinds.Injector {
			m.failures.WithLabelValues(kind.Kind)
			m.waits.WithLabelValues(kind.Kind)
			m.statusWrites.WithLabelValues(kind.Kind)
			m.yielding.WithLabelValues(kind.Kind)
		}
	}
	return m
}

// Watch creates the metrics that are read from the cache at each scrape, and the one with the
// constant label version.
func (m *Metrics) Watch(version string, census Census) {
	promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seamark_workloads_info", Help: "Version of the program; always 1.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	m.registry.MustRegister(newCollector(census))
}

// Wrote counts a write to an object of a set.
func (m *Metrics) Wrote(object, operation, reason string) {
	m.writes.WithLabelValues(object, operation, reason).Inc()
}

// Failed counts a failed write for a set of the kind.
func (m *Metrics) Failed(kind string) { m.failures.WithLabelValues(kind).Inc() }

// Waited counts a reconcile that waited for the cache.
func (m *Metrics) Waited(kind string) { m.waits.WithLabelValues(kind).Inc() }

// StatusWritten counts a write of the status of a set.
func (m *Metrics) StatusWritten(kind string) { m.statusWrites.WithLabelValues(kind).Inc() }

// Yielding records whether the controller of a kind yields to OpenKruise's manager.
func (m *Metrics) Yielding(kind string, yields bool) {
	value := 0.0
	if yields {
		value = 1
	}
	m.yielding.WithLabelValues(kind).Set(value)
}

// Census returns how far all sets are, by kind. It is nil while the process does not lead.
type Census func() map[string][]planning.Progress

type collector struct {
	census     Census
	sets, pods *prometheus.Desc
}

func newCollector(census Census) *collector {
	return &collector{
		census: census,
		sets: prometheus.NewDesc("seamark_workloads_sets",
			"Sets of a kind by state: all, updating (some pods are not updated yet) or failing (writes are refused). The leader reports it.",
			[]string{"kind", "state"}, nil),
		pods: prometheus.NewDesc("seamark_workloads_pods",
			"Pods of the sets of a kind by state: desired, ready, available, updated or unavailable (desired, but not available). The leader reports it.",
			[]string{"kind", "state"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.sets
	descriptions <- c.pods
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	for kind, all := range c.census() {
		sets, pods := map[string]int{"all": len(all), "updating": 0, "failing": 0}, map[string]int{}
		for i := range all {
			count := &all[i]
			if count.Updating() {
				sets["updating"]++
			}
			if count.Failing != "" {
				sets["failing"]++
			}
			pods["desired"] += int(count.Desired)
			pods["ready"] += int(count.Ready)
			pods["available"] += int(count.Available)
			pods["updated"] += int(count.Updated)
			pods["unavailable"] += int(max(count.Desired-count.Available, 0))
		}
		for state, number := range sets {
			metrics <- prometheus.MustNewConstMetric(c.sets, prometheus.GaugeValue, float64(number), kind, state)
		}
		for _, state := range []string{"desired", "ready", "available", "updated", "unavailable"} {
			metrics <- prometheus.MustNewConstMetric(c.pods, prometheus.GaugeValue, float64(pods[state]), kind, state)
		}
	}
}
