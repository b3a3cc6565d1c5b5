// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	// The controller package registers the metrics of controllers and queues.
	_ "sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/seamark-dev/seamark/test/expect"
)

// TestLabelsAreBounded checks the labels against a list, which contains no label for pods.
func TestLabelsAreBounded(t *testing.T) {
	bounded := []string{
		"handler", "in_force", "kind", "limit", "marker", "method", "namespace", "node", "object", "operation", "probe", "reason", "result", "state", "version",
	}
	all, err := programs()
	expect.NoError(t, err)
	for _, program := range all {
		least := 8
		if program.Name == "seamark-injector" {
			least = 1 // What it does is one thing.
		}
		if len(program.Own) < least {
			t.Errorf("%s has %d metrics, want at least %d", program.Name, len(program.Own), least)
		}
		for _, m := range program.Own {
			if !strings.HasPrefix(m.Name, "seamark_") {
				t.Errorf("%s: the name does not start with seamark_", m.Name)
			}
			for _, label := range m.Labels {
				if !slices.Contains(bounded, label.Name) {
					t.Errorf("%s has the label %s, want one of %v", m.Name, label.Name, bounded)
				}
			}
		}
	}
}

// TestLibrariesExportTheirMetrics compares the tables with the metrics that the libraries
// register.
func TestLibrariesExportTheirMetrics(t *testing.T) {
	libraries, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("the registry of the libraries is a %T, which describes no metrics", ctrlmetrics.Registry)
	}
	registered := map[string]string{}
	for _, collector := range []prometheus.Collector{
		libraries, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		described := make(chan *prometheus.Desc)
		go func() { collector.Describe(described); close(described) }()
		for desc := range described {
			// A Desc has no methods that return its name and its labels.
			parts := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: {(.*)}}`).FindStringSubmatch(desc.String())
			if len(parts) != 3 {
				t.Fatalf("cannot parse %s", desc)
			}
			names := strings.Split(parts[2], ",")
			slices.Sort(names)
			registered[parts[1]] = strings.Join(names, ",")
		}
	}
	for _, m := range append(libraryMetrics(), processMetrics()...) {
		var names []string
		for _, label := range m.Labels {
			names = append(names, label.Name)
		}
		slices.Sort(names)
		if labels, found := registered[m.Name]; !found || labels != strings.Join(names, ",") {
			t.Errorf("%s: registered: %t, with labels %q, want %q", m.Name, found, labels, names)
		}
	}
}

func TestPage(t *testing.T) {
	var page strings.Builder
	err := writePage(&page, []Program{{Name: "p", Own: []Metric{{
		Name: "runs", Type: "histogram", Help: "Runs.", Buckets: []float64{0.5, 1, 20},
		Labels: []Label{{Name: "node"}, {Name: "result", Values: []string{"error", "success"}}},
	}}}})
	expect.NoError(t, err)
	got := page.String()
	const want = "| `runs` | histogram | `node`; `result`: error, success | Runs. Buckets from 0.5 to 20. |\n"
	if !strings.Contains(got, want) {
		t.Errorf("page has no line %q:\n%s", want, got)
	}
}
