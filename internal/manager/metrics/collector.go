// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
)

// scrapeTimeout limits the reads of one scrape, which go to the caches.
const scrapeTimeout = 5 * time.Second

// Caches are what the metrics are read from at each scrape. All fields are required except
// Provided.
type Caches struct {
	// Reader lists markers and NodePodProbes. The results are not modified.
	Reader client.Reader
	// Slices lists the ProbeReports of a node. The results are not modified.
	Slices func(ctx context.Context, node string) ([]*seamarkv1alpha1.ProbeReport, error)
	// Provided returns the pods that providers of virtual nodes probe. Nil means none.
	Provided func(context.Context) ([]Provided, error)
	// Shortages returns how many probes of pods the plans leave out for lack of room, by marker.
	Shortages func() map[types.NamespacedName]int
	// Pending tracks how long plans wait for their agents.
	Pending *Pending
	// Leads is closed when this manager becomes the leader. Until then there are no series,
	// so that each value is exported by one manager of the cluster only.
	Leads <-chan struct{}
}

// collector counts, at each scrape, pods by marker, probe and state, and nodes by their
// plans. It stores nothing, so a series disappears with its marker or node. The cost of a
// scrape is proportional to the number of planned probes in the cluster.
type collector struct {
	Caches
	pods, planned, waits, plans, short *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

func newCollector(caches Caches) *collector {
	return &collector{
		Caches: caches,
		pods: prometheus.NewDesc("seamark_manager_probed_pods",
			"Pods with a planned probe by reported state: Succeeded, Failed, Unknown, or NoResult before the first report. Exported by the leader only.",
			[]string{"namespace", "marker", "probe", "state"}, nil),
		planned: prometheus.NewDesc("seamark_manager_node_planned_probes",
			"Probes in the plan of a node; no series for a node without probes. Exported by the leader only.",
			[]string{"node"}, nil),
		waits: prometheus.NewDesc("seamark_manager_node_plan_pending_seconds",
			"Time since the node's agent last advanced to a newer plan, or since a newer plan was available, whichever is later; no series for a node whose agent runs the latest plan. Exported by the leader only.",
			[]string{"node"}, nil),
		plans: prometheus.NewDesc("seamark_manager_plans",
			"NodePodProbes by whether the agent runs the latest plan: true or false. Exported by the leader only.",
			[]string{"in_force"}, nil),
		short: prometheus.NewDesc("seamark_manager_unplanned_probes",
			"Probes, counted once per pod, that do not run because their namespace exceeds its share of a node's plan; no series for a marker without them. Exported by the leader only.",
			[]string{"namespace", "marker"}, nil),
	}
}

// Describe sends the descriptions of all metrics.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.pods, c.planned, c.waits, c.plans, c.short} {
		descs <- desc
	}
}

// slicesOf returns a function that lists the ProbeReports of a node.
func (c *collector) slicesOf(ctx context.Context) func(string) ([]*seamarkv1alpha1.ProbeReport, error) {
	return func(node string) ([]*seamarkv1alpha1.ProbeReport, error) { return c.Slices(ctx, node) }
}

// Collect sends the current metrics if this manager is the leader.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var markers v1alpha1.PodProbeMarkerList
	if err := c.Reader.List(ctx, &markers); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.pods, fmt.Errorf("list markers: %w", err))
		return
	}
	var plans v1alpha1.NodePodProbeList
	if err := c.Reader.List(ctx, &plans); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.plans, fmt.Errorf("list NodePodProbes: %w", err))
		return
	}
	var provided []Provided
	if c.Provided != nil {
		var err error
		if provided, err = c.Provided(ctx); err != nil {
			metrics <- prometheus.NewInvalidMetric(c.pods, fmt.Errorf("list pods of virtual nodes: %w", err))
			return
		}
	}
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	counted, err := census(markers.Items, plans.Items, c.slicesOf(ctx), provided)
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(c.pods, err)
		return
	}
	for probe, counts := range counted {
		for state, n := range counts {
			send(c.pods, float64(n), probe.namespace, probe.Marker, probe.Probe, string(state))
		}
	}
	for marker, n := range c.Shortages() {
		send(c.short, float64(n), marker.Namespace, marker.Name)
	}
	for node, age := range c.Pending.Ages() {
		send(c.waits, age.Seconds(), node)
	}
	byInForce := map[bool]int{true: 0, false: 0}
	for i := range plans.Items {
		byInForce[inForce(&plans.Items[i])]++
		if n := probesOf(&plans.Items[i]); n > 0 {
			send(c.planned, float64(n), plans.Items[i].Name)
		}
	}
	for in, n := range byInForce {
		send(c.plans, float64(n), strconv.FormatBool(in))
	}
}
