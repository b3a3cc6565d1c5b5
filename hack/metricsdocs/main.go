// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Command metricsdocs writes the reference of the metrics, docs/metrics.md. It registers
// Seamark's metrics as the programs do, creates at least one series of each, and prints what
// it gathers, so that the page matches the code. The metrics of libraries are a table.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/seamark-dev/seamark/api/apps/v1alpha1"
	seamarkv1alpha1 "github.com/seamark-dev/seamark/api/seamark/v1alpha1"
	agentmetrics "github.com/seamark-dev/seamark/internal/agent/metrics"
	managermetrics "github.com/seamark-dev/seamark/internal/manager/metrics"
	"github.com/seamark-dev/seamark/internal/marking/podview"
	"github.com/seamark-dev/seamark/internal/marking/staleness"
	"github.com/seamark-dev/seamark/internal/probing"
	"github.com/seamark-dev/seamark/internal/program/kinds"
	workloadsmetrics "github.com/seamark-dev/seamark/internal/workloads/metrics"
	"github.com/seamark-dev/seamark/internal/workloads/planning"
	"github.com/seamark-dev/seamark/internal/workloads/sidecar/injector"
	"github.com/seamark-dev/seamark/test/builders"
)

func main() {
	asJSON := flag.Bool("json", false, "print the metrics as JSON, for programs")
	flag.Parse()
	if err := run(os.Stdout, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdocs:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, asJSON bool) error {
	programs, err := programs()
	if err != nil {
		return err
	}
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(programs)
	}
	return writePage(out, programs)
}

// pageText is the reference with its tables as templates.
//
//go:embed metrics.md.tmpl
var pageText string

// writePage writes the reference as Markdown.
func writePage(out io.Writer, programs []Program) error {
	page, err := template.New("metrics").Funcs(template.FuncMap{
		"join":   strings.Join,
		"number": func(f float64) string { return strconv.FormatFloat(f, 'g', 4, 64) },
		"last":   func(buckets []float64) int { return len(buckets) - 1 },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return page.Execute(out, programs)
}

// processMetrics are the metrics of the Go runtime and the process that help to operate Seamark.
func processMetrics() []Metric {
	return []Metric{
		{Name: "go_goroutines", Type: "gauge", Help: "Number of goroutines that currently exist."},
		{Name: "process_cpu_seconds_total", Type: "counter", Help: "Total user and system CPU time spent in seconds."},
		{Name: "process_resident_memory_bytes", Type: "gauge", Help: "Resident memory size in bytes."},
	}
}

// libraryMetrics are the metrics of the manager's libraries that help to operate Seamark.
func libraryMetrics() []Metric {
	controller := []Label{{Name: "controller"}}
	results := Label{Name: "result", Values: []string{"error", "requeue", "requeue_after", "success"}}
	queue := []Label{{Name: "controller"}, {Name: "name"}}
	return []Metric{
		{Name: "controller_runtime_active_workers", Type: "gauge", Labels: controller,
			Help: "Number of busy workers of a controller."},
		{Name: "controller_runtime_max_concurrent_reconciles", Type: "gauge", Labels: controller,
			Help: "Number of workers of a controller."},
		{Name: "controller_runtime_reconcile_errors_total", Type: "counter", Labels: controller,
			Help: "Reconciliations that returned an error."},
		{Name: "controller_runtime_reconcile_panics_total", Type: "counter", Labels: controller,
			Help: "Reconciliations that panicked."},
		{Name: "controller_runtime_reconcile_time_seconds", Type: "histogram", Labels: controller,
			Help: "Duration of a reconciliation.", Buckets: []float64{0.005, 60}},
		{Name: "controller_runtime_reconcile_total", Type: "counter", Labels: append(controller, results),
			Help: "Reconciliations by result."},
		{Name: "leader_election_master_status", Type: "gauge", Labels: []Label{{Name: "name"}},
			Help: "1 if the manager leads, 0 if it is on standby. `name` is the name of the Lease."},
		{Name: "rest_client_requests_total", Type: "counter",
			Labels: []Label{{Name: "code"}, {Name: "host"}, {Name: "method"}},
			Help:   "Requests to the API server by status code, host and method."},
		{Name: "workqueue_depth", Type: "gauge", Labels: append(queue, Label{Name: "priority"}),
			Help: "Number of queued items of a controller."},
		{Name: "workqueue_queue_duration_seconds", Type: "histogram", Labels: queue,
			Help: "Time that an item is queued before a worker takes it.", Buckets: []float64{1e-08, 1000}},
		{Name: "workqueue_retries_total", Type: "counter", Labels: queue,
			Help: "Items that were queued with a delay: after an error, or by request of the controller."},
	}
}

// Program is a program and the metrics that it serves.
type Program struct {
	// Name is the name of the program.
	Name string `json:"name"`
	// Own are the metrics of Seamark, by name.
	Own []Metric `json:"own"`
	// Others are metrics of libraries that help to operate Seamark, by name.
	Others []Metric `json:"others"`
}

// Metric describes a metric.
type Metric struct {
	// Name, Type and Help are as in the text format. Type is counter, gauge or histogram.
	Name string `json:"name"`
	Type string `json:"type"`
	Help string `json:"help"`
	// Labels are sorted by name.
	Labels []Label `json:"labels,omitempty"`
	// Buckets are the finite upper bounds of a histogram, or the first and the last of them.
	Buckets []float64 `json:"buckets,omitempty"`
}

// Label is a label of a metric.
type Label struct {
	// Name is the name of the label.
	Name string `json:"name"`
	// Values are all values, or empty if they are names of objects or come from other programs.
	Values []string `json:"values,omitempty"`
}

// programs returns the manager, the agent, the program of the workloads, and the injectors.
func programs() ([]Program, error) {
	registry, err := managerRegistry()
	if err != nil {
		return nil, err
	}
	manager, err := registryMetrics(registry)
	if err != nil {
		return nil, err
	}
	agent, err := registryMetrics(agentRegistry())
	if err != nil {
		return nil, err
	}
	workloads, err := registryMetrics(workloadsRegistry())
	if err != nil {
		return nil, err
	}
	injectors := prometheus.NewRegistry()
	injector.NewMetrics(injectors)
	injected, err := registryMetrics(injectors)
	if err != nil {
		return nil, err
	}
	libraries := append(libraryMetrics(), processMetrics()...)
	slices.SortFunc(libraries, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return []Program{
		{Name: "seamark-manager", Own: manager, Others: libraries},
		{Name: "seamark-agent", Own: agent, Others: processMetrics()},
		{Name: "seamark-workloads", Own: workloads, Others: processMetrics()},
		{Name: "seamark-injector", Own: injected, Others: processMetrics()},
	}, nil
}

// registryMetrics returns the metrics of a registry, by name.
func registryMetrics(registry *prometheus.Registry) ([]Metric, error) {
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	metrics := make([]Metric, 0, len(families))
	for _, family := range families {
		metrics = append(metrics, metricOf(family))
	}
	return metrics, nil
}

// agentRegistry returns a registry with a series of each metric of the agent.
func agentRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	m := agentmetrics.New(registry)
	zero := func() int64 { return 0 }
	none := func() int { return 0 }
	errs := func(v1alpha1.ProbeErrorReason) int { return 0 }
	m.Watch(
		"node", "v0", agentmetrics.Now{
			Planned: zero, Generation: zero, Queued: none, NetworkQueued: none, Unended: none, Undescribed: none, Slices: none, Errors: errs,
		},
	)
	for _, handler := range append(probing.Handlers(), agentmetrics.HandlerStartup) {
		m.Probed(handler, agentmetrics.ResultSuccess, 0)
	}
	for _, method := range []string{"ContainerStatus", "ExecSync", "GetContainerEvents", "ListContainers", "Version"} {
		m.RuntimeCalled(method, 0, nil)
		m.RuntimeCalled(method, 0, errors.New("away"))
	}
	return registry
}

// managerRegistry returns a registry with the metrics of a manager that leads a cluster with one
// marker and one node.
func managerRegistry() (*prometheus.Registry, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("create scheme: %w", err)
	}
	registry := prometheus.NewRegistry()
	npp := &v1alpha1.NodePodProbe{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Generation: 1},
		Spec: v1alpha1.NodePodProbeSpec{PodProbes: []v1alpha1.PodProbe{{
			Namespace: "ns", Name: "pod", UID: "uid", Probes: []v1alpha1.ContainerProbe{{Name: "marker#probe"}},
		}}},
	}
	marker := builders.Marker("ns", "marker").Probe(builders.Probe("probe")).Build()
	pending := managermetrics.NewPending(time.Now, func(string) *v1alpha1.NodePodProbe { return npp })
	leads := make(chan struct{})
	pending.OnAdd(npp, true)
	close(leads)
	m := managermetrics.New(registry)
	m.WatchStale(func(staleness.Cause) int { return 0 }, func() int { return 0 })
	m.WatchExclusive(func() int { return 0 })
	m.Watch("v0", managermetrics.Caches{
		Reader:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(npp, marker).Build(),
		Pending: pending, Leads: leads,
		Plans:    func(context.Context) ([]*v1alpha1.NodePodProbe, error) { return []*v1alpha1.NodePodProbe{npp}, nil },
		Slices:   func(context.Context, string) ([]*seamarkv1alpha1.ProbeReport, error) { return nil, nil },
		Provided: func(context.Context) ([]podview.Pod, error) { return nil, nil },
	})
	return registry, nil
}

// workloadsRegistry returns a registry with the metrics of a seamark-workloads that leads.
func workloadsRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	counts := map[string][]planning.Progress{}
	for _, kind := range kinds.Table() {
		if kind.Role != kinds.Injector { // SidecarSets are not counted.
			counts[kind.Kind] = nil
		}
	}
	m := workloadsmetrics.New(registry)
	m.Watch("v0", func() map[string][]planning.Progress { return counts })
	for object, operations := range map[string][]string{
		"pod":                   {"adopt", "create", "delete", "patch"},
		"persistentvolumeclaim": {"create", "delete", "update"},
		"controllerrevision":    {"create", "delete", "update"},
	} {
		for _, operation := range operations {
			// The planners define the reasons.
			m.Wrote(object, operation, "")
		}
	}
	return registry
}

// unbounded returns the labels whose values are names of objects or versions.
func unbounded() []string {
	return []string{"namespace", "marker", "probe", "node", "version"}
}

// metricOf derives the description of a metric from its series.
func metricOf(family *dto.MetricFamily) Metric {
	m := Metric{Name: family.GetName(), Type: strings.ToLower(family.GetType().String()), Help: family.GetHelp()}
	values := map[string]map[string]bool{}
	for _, series := range family.GetMetric() {
		for _, pair := range series.GetLabel() {
			if values[pair.GetName()] == nil {
				values[pair.GetName()] = map[string]bool{}
			}
			if pair.GetValue() != "" {
				values[pair.GetName()][pair.GetValue()] = true
			}
		}
		m.Buckets = m.Buckets[:0]
		for _, bucket := range series.GetHistogram().GetBucket() {
			m.Buckets = append(m.Buckets, bucket.GetUpperBound())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		label := Label{Name: name}
		if !slices.Contains(unbounded(), name) && len(values[name]) > 0 {
			label.Values = slices.Sorted(maps.Keys(values[name]))
		}
		m.Labels = append(m.Labels, label)
	}
	return m
}
