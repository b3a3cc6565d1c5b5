// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/metrics/agent"
	managermetrics "github.com/seamark-dev/seamark/internal/metrics/manager"
	"github.com/seamark-dev/seamark/internal/probe"
	"github.com/seamark-dev/seamark/test/builders"
)

// Program is one of the two programs and what it serves at /metrics.
type Program struct {
	// Name is the program's.
	Name string `json:"name"`
	// Own are the metrics that Seamark makes, by name.
	Own []Metric `json:"own"`
	// Others are those of the libraries that alerts and the dashboard use, by name.
	Others []Metric `json:"others"`
}

// Metric is one metric.
type Metric struct {
	// Name, Type and Help are what Prometheus is told; Type is counter, gauge or histogram.
	Name string `json:"name"`
	Type string `json:"type"`
	Help string `json:"help"`
	// Labels are in order of their names.
	Labels []Label `json:"labels,omitempty"`
	// Buckets are a histogram's upper bounds, without the infinite one.
	Buckets []float64 `json:"buckets,omitempty"`
}

// Label is one label of a metric.
type Label struct {
	// Name is the label's.
	Name string `json:"name"`
	// Values are all there are; none where they are names of objects and the like.
	Values []string `json:"values,omitempty"`
}

// others are the metrics of libraries that are told of: they answer a question of those
// who run Seamark.
func others() []string {
	return []string{
		"controller_runtime_active_workers", "controller_runtime_max_concurrent_reconciles",
		"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_panics_total",
		"controller_runtime_reconcile_time_seconds", "controller_runtime_reconcile_total",
		"go_goroutines", "leader_election_master_status",
		"process_cpu_seconds_total", "process_resident_memory_bytes",
		"rest_client_requests_total", "workqueue_depth", "workqueue_queue_duration_seconds", "workqueue_retries_total",
	}
}

// programs returns the manager and the agent.
func programs(ctx context.Context) ([]Program, error) {
	manager, err := managerRegistry()
	if err != nil {
		return nil, err
	}
	if err := useLibraries(ctx); err != nil {
		return nil, err
	}
	var told []Program
	for _, p := range []struct {
		name      string
		gatherers prometheus.Gatherers
	}{
		{name: "seamark-manager", gatherers: prometheus.Gatherers{manager, ctrlmetrics.Registry}},
		{name: "seamark-agent", gatherers: prometheus.Gatherers{agentRegistry()}},
	} {
		families, err := p.gatherers.Gather()
		if err != nil {
			return nil, fmt.Errorf("gathering the metrics of %s: %w", p.name, err)
		}
		program := Program{Name: p.name}
		for _, family := range families {
			switch {
			case strings.HasPrefix(family.GetName(), "seamark_"):
				program.Own = append(program.Own, metricOf(family))
			case slices.Contains(others(), family.GetName()):
				program.Others = append(program.Others, metricOf(family))
			}
		}
		told = append(told, program)
	}
	return told, nil
}

// agentRegistry has what the agent serves.
func agentRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := agentmetrics.New(registry)
	zero := func() int64 { return 0 }
	m.Watch("node", "v0", agentmetrics.Now{Planned: zero, Generation: zero, Queued: func() int { return 0 }})
	for _, handler := range probe.Handlers() {
		m.Probed(handler, agentmetrics.ResultSuccess, 0)
	}
	for _, method := range []string{"ContainerStatus", "ExecSync", "GetContainerEvents", "ListContainers", "Version"} {
		m.RuntimeCalled(method, 0, nil)
		m.RuntimeCalled(method, 0, errors.New("away"))
	}
	return registry
}

// managerRegistry has what the leading manager makes itself, of a cluster with one marker
// and one node.
func managerRegistry() (*prometheus.Registry, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("making the scheme: %w", err)
	}
	registry := prometheus.NewRegistry()
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Generation: 1},
		Spec: v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
			Namespace: "ns", Name: "pod", UID: "uid", Probes: []v1alpha1.ContainerProbe{{Name: "marker#probe"}},
		}}},
	}
	marker := builders.Marker("ns", "marker").Probe(builders.Probe("probe")).Build()
	pending, leads := managermetrics.NewPending(time.Now), make(chan struct{})
	pending.OnAdd(npp, true)
	close(leads)
	managermetrics.New(registry).Watch("v0", managermetrics.Caches{
		Reader:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(npp, marker).Build(),
		Pending: pending, Leads: leads,
	})
	return registry, nil
}

// named are labels whose values are names of objects, or come from outside.
func named() []string {
	return []string{"namespace", "marker", "probe", "node", "version", "controller", "name", "priority", "host", "code", "method"}
}

// metricOf reads a metric from its series.
func metricOf(family *dto.MetricFamily) Metric {
	m := Metric{Name: family.GetName(), Type: strings.ToLower(family.GetType().String()), Help: family.GetHelp()}
	values := map[string]map[string]bool{}
	for _, series := range family.GetMetric() {
		for _, pair := range series.GetLabel() {
			if values[pair.GetName()] == nil {
				values[pair.GetName()] = map[string]bool{}
			}
			values[pair.GetName()][pair.GetValue()] = true
		}
		m.Buckets = m.Buckets[:0]
		for _, bucket := range series.GetHistogram().GetBucket() {
			m.Buckets = append(m.Buckets, bucket.GetUpperBound())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		label := Label{Name: name}
		if own := strings.HasPrefix(m.Name, "seamark_"); !slices.Contains(named(), name) || own && name == "method" {
			label.Values = slices.Sorted(maps.Keys(values[name]))
		}
		m.Labels = append(m.Labels, label)
	}
	return m
}
