// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	"github.com/seamark-dev/seamark/internal/marking/mark"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/probing/identity"
)

// scrapeTimeout limits the reads of one scrape, which go to the caches.
const scrapeTimeout = 5 * time.Second

// Caches are what the metrics are read from at each scrape. All fields are required.
type Caches struct {
	// Reader lists markers. The results are not modified.
	Reader client.Reader
	// Plans returns the NodePodProbes with the whole plans. The results are not modified.
	Plans func(context.Context) ([]*v1alpha1.NodePodProbe, error)
	// Slices lists the ProbeReports of a node. The results are not modified.
	Slices func(ctx context.Context, node string) ([]*seamarkv1alpha1.ProbeReport, error)
	// Provided returns the views of the pods that providers of virtual nodes probe.
	Provided func(context.Context) ([]podview.Pod, error)
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
	pods, planned, waits, plans *prometheus.Desc
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
	}
}

// Describe sends the descriptions of all metrics.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.pods, c.planned, c.waits, c.plans} {
		descs <- desc
	}
}

// Collect sends the current metrics if this manager is the leader.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	counted, plans, err := c.count()
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(c.pods, err)
		return
	}
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for probe, counts := range counted {
		for state, n := range counts {
			send(c.pods, float64(n), probe.namespace, probe.Marker, probe.Probe, string(state))
		}
	}
	for node, age := range c.Pending.Ages() {
		send(c.waits, age.Seconds(), node)
	}
	byInForce := map[bool]int{true: 0, false: 0}
	for _, npp := range plans {
		byInForce[inForce(npp)]++
		if n := probesOf(npp); n > 0 {
			send(c.planned, float64(n), npp.Name)
		}
	}
	for in, n := range byInForce {
		send(c.plans, float64(n), strconv.FormatBool(in))
	}
}

// count reads the caches.
func (c *collector) count() (map[probe]stateCounts, []*v1alpha1.NodePodProbe, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var markers v1alpha1.PodProbeMarkerList
	if err := c.Reader.List(ctx, &markers); err != nil {
		return nil, nil, fmt.Errorf("list markers: %w", err)
	}
	plans, err := c.Plans(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read plans: %w", err)
	}
	provided, err := c.Provided(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list pods of virtual nodes: %w", err)
	}
	slicesOf := func(node string) ([]*seamarkv1alpha1.ProbeReport, error) { return c.Slices(ctx, node) }
	counted, err := countStates(markers.Items, plans, slicesOf, provided)
	return counted, plans, err
}

// noResult is the state of a planned probe that has no reported state yet.
const noResult v1alpha1.ProbeState = "NoResult"

type probe struct {
	namespace string
	identity.ID
}

// stateCounts is the number of pods per state.
type stateCounts map[v1alpha1.ProbeState]int

func newStateCounts() stateCounts {
	return stateCounts{v1alpha1.ProbeSucceeded: 0, v1alpha1.ProbeFailed: 0, v1alpha1.ProbeUnknown: 0, noResult: 0}
}

// countStates counts pods by the states of their planned probes, as reported by agents and
// providers. It covers exactly the probes of the existing markers: probes of a deleted
// marker that are still planned or reported are not counted. slicesOf returns the ProbeReports of a
// node.
func countStates(
	markers []v1alpha1.PodProbeMarker, plans []*v1alpha1.NodePodProbe, slicesOf func(node string) ([]*seamarkv1alpha1.ProbeReport, error),
	provided []podview.Pod,
) (map[probe]stateCounts, error) {
	all := make(map[probe]stateCounts)
	for i := range markers {
		for j := range markers[i].Spec.Probes {
			id := identity.ID{Marker: markers[i].Name, Probe: markers[i].Spec.Probes[j].Name}
			all[probe{namespace: markers[i].Namespace, ID: id}] = newStateCounts()
		}
	}
	for _, npp := range plans {
		if len(npp.Spec.PodProbes) == 0 {
			continue
		}
		slices, err := slicesOf(npp.Name)
		if err != nil {
			return nil, err
		}
		addNode(all, mark.NodeReport{Plan: npp, Slices: slices})
	}
	for _, pod := range provided {
		for _, planned := range pod.Plan.Probes {
			if counts, found := all[probe{namespace: pod.Object.Namespace, ID: planned.ID}]; found {
				state, _ := pod.Report.State(planned)
				counts[normalize(state.State)]++
			}
		}
	}
	return all, nil
}

// addNode adds the pods of one node. Reported states that are no longer planned are ignored.
func addNode(all map[probe]stateCounts, report mark.NodeReport) {
	states := report.States()
	for i := range report.Plan.Spec.PodProbes {
		pod := &report.Plan.Spec.PodProbes[i]
		for j := range pod.Probes {
			id, err := identity.Parse(pod.Probes[j].Name)
			if err != nil {
				continue
			}
			if counts, found := all[probe{namespace: pod.Namespace, ID: id}]; found {
				counts[stateOf(states[pod.UID], &pod.Probes[j])]++
			}
		}
	}
}

func stateOf(states []v1alpha1.ContainerProbeState, planned *v1alpha1.ContainerProbe) v1alpha1.ProbeState {
	for i := range states {
		if states[i].Name == planned.Name && identity.SamePlan(states[i].Plan, planned.Plan) {
			return normalize(states[i].State)
		}
	}
	return noResult
}

// normalize returns the state, or noResult if it is not a valid one.
func normalize(state v1alpha1.ProbeState) v1alpha1.ProbeState {
	switch state {
	case v1alpha1.ProbeSucceeded, v1alpha1.ProbeFailed, v1alpha1.ProbeUnknown:
		return state
	default:
		return noResult
	}
}

// probesOf counts the probes in a node's plan.
func probesOf(npp *v1alpha1.NodePodProbe) int {
	n := 0
	for i := range npp.Spec.PodProbes {
		n += len(npp.Spec.PodProbes[i].Probes)
	}
	return n
}

// inForce reports whether the agent runs the node's latest plan. This includes an agent
// that is ahead of a stale npp.
func inForce(npp *v1alpha1.NodePodProbe) bool {
	return npp.Status.ObservedGeneration >= npp.Generation
}
