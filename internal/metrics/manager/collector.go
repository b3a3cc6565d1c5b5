// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
)

// scrapeTimeout bounds the reads of one scrape. They go to the caches.
const scrapeTimeout = 5 * time.Second

// CollectorOptions are what a Collector reads. All are required but Provided.
type CollectorOptions struct {
	// Cache reads markers and NodePodProbes. What it returns is not changed.
	Cache client.Reader
	// Provided returns the pods that providers of virtual kubelets probe; nil where none
	// do.
	Provided func(context.Context) ([]Provided, error)
	// Pending knows how long plans wait for their agents.
	Pending *Pending
	// Leads is closed once this manager leads. Before, the collector has no series, so that
	// the managers of a cluster together tell everything once.
	Leads <-chan struct{}
}

// Collector counts, at each scrape, what the caches of the leading manager hold: pods by
// marker, probe and state, and nodes by their plans. It keeps nothing, so a series goes
// with the marker or node that it speaks of. A scrape takes time in proportion to the
// planned probes of the cluster.
type Collector struct {
	CollectorOptions
	pods, planned, waits, plans *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector, to be registered.
func NewCollector(options CollectorOptions) *Collector {
	return &Collector{
		CollectorOptions: options,
		pods: prometheus.NewDesc("seamark_manager_probed_pods",
			"Pods that a probe is planned for, by the state reported of it: Succeeded, Failed, Unknown, or NoResult before the first. From the leader alone.",
			[]string{"namespace", "marker", "probe", "state"}, nil),
		planned: prometheus.NewDesc("seamark_manager_node_planned_probes",
			"Probes in the plan of a node; none for a node without any. From the leader alone.",
			[]string{"node"}, nil),
		waits: prometheus.NewDesc("seamark_manager_node_plan_pending_seconds",
			"How long a node's agent has put no newer plan in force though there is one; none for a node whose plan is in force. From the leader alone.",
			[]string{"node"}, nil),
		plans: prometheus.NewDesc("seamark_manager_plans",
			"NodePodProbes, by whether the agent has the newest plan in force: true or false. From the leader alone.",
			[]string{"in_force"}, nil),
	}
}

// Describe tells what Collect may send.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.pods, c.planned, c.waits, c.plans} {
		descs <- desc
	}
}

// Collect sends what the caches hold now, if this manager leads.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var markers v1alpha1.PodProbeMarkerList
	if err := c.Cache.List(ctx, &markers); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.pods, fmt.Errorf("listing the markers: %w", err))
		return
	}
	var plans v1alpha1.NodePodProbeList
	if err := c.Cache.List(ctx, &plans); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.plans, fmt.Errorf("listing the NodePodProbes: %w", err))
		return
	}
	var provided []Provided
	if c.Provided != nil {
		var err error
		if provided, err = c.Provided(ctx); err != nil {
			metrics <- prometheus.NewInvalidMetric(c.pods, fmt.Errorf("listing the pods of providers: %w", err))
			return
		}
	}
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for probe, counts := range census(markers.Items, plans.Items, provided) {
		for state, n := range counts {
			send(c.pods, float64(n), probe.namespace, probe.Marker, probe.Probe, string(state))
		}
	}
	for node, age := range c.Pending.Ages() {
		send(c.waits, age.Seconds(), node)
	}
	standing := map[bool]int{true: 0, false: 0}
	for i := range plans.Items {
		standing[inForce(&plans.Items[i])]++
		if n := probesOf(&plans.Items[i]); n > 0 {
			send(c.planned, float64(n), plans.Items[i].Name)
		}
	}
	for in, n := range standing {
		send(c.plans, float64(n), strconv.FormatBool(in))
	}
}
