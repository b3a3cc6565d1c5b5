// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import "github.com/prometheus/client_golang/prometheus"

// Count is what the status of a set counts.
type Count struct {
	// Desired is the number of replicas in the specification. Ready, Available and Updated are those
	// of the status.
	Desired, Ready, Available, Updated int32
	// Updating reports whether the set has pods of an old revision that it must update. Failing
	// reports whether its last writes failed.
	Updating, Failing bool
}

// Census returns the counts of all sets by kind. It is nil while the process does not lead.
type Census func() map[string][]Count

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
	for kind, counts := range c.census() {
		sets, pods := map[string]int{"all": len(counts), "updating": 0, "failing": 0}, map[string]int{}
		for _, count := range counts {
			if count.Updating {
				sets["updating"]++
			}
			if count.Failing {
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
