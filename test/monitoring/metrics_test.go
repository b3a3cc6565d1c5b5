// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// metric describes a metric, as hack/metricsdocs prints it.
type metric struct {
	Name, Type string
	Labels     []struct {
		Name   string
		Values []string
	}
}

// catalog maps the names of the series that the programs export to their metrics.
type catalog map[string]metric

// readCatalog gets the metrics from the code. A histogram has three series.
func readCatalog(t *testing.T) catalog {
	t.Helper()
	var programs []struct{ Own, Others []metric }
	if err := json.Unmarshal(output(t, "metricsdocs", "-json"), &programs); err != nil {
		t.Fatalf("decode the metrics: %v", err)
	}
	all := catalog{}
	for _, program := range programs {
		for _, m := range append(program.Own, program.Others...) {
			if m.Type != "histogram" {
				all[m.Name] = m
				continue
			}
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[m.Name+suffix] = m
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d series, want at least 30", len(all))
	}
	return all
}

// check returns the problems of an expression: its syntax, or unknown metrics and labels.
func (c catalog) check(expression string) []string {
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	var known []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			problems = append(problems, c.selector(selector)...)
			known = append(known, c.labelsOf(selector.Name)...)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			if !slices.Contains(known, label) {
				problems = append(problems, fmt.Sprintf("none of its metrics has the label %q", label))
			}
		}
		return nil
	})
	return problems
}

// selector checks a metric's name, its labels, and the values that they are compared with.
func (c catalog) selector(s *parser.VectorSelector) []string {
	m, found := c[s.Name]
	if !found {
		return []string{fmt.Sprintf("unknown metric %q", s.Name)}
	}
	var problems []string
	for _, matcher := range s.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		if !slices.Contains(c.labelsOf(s.Name), matcher.Name) {
			problems = append(problems, fmt.Sprintf("%s has no label %q", s.Name, matcher.Name))
		}
		for _, label := range m.Labels {
			if label.Name == matcher.Name && len(label.Values) > 0 && !slices.ContainsFunc(label.Values, matcher.Matches) {
				problems = append(problems, fmt.Sprintf("%s matches none of the values %v of %s", matcher, label.Values, s.Name))
			}
		}
	}
	return problems
}

// labelsOf returns the labels of a series, including those that every scrape adds.
func (c catalog) labelsOf(name string) []string {
	all := []string{"instance", "job"}
	if strings.HasSuffix(name, "_bucket") {
		all = append(all, "le")
	}
	for _, label := range c[name].Labels {
		all = append(all, label.Name)
	}
	return all
}

// grouping returns the labels by which a node groups or joins.
func grouping(node parser.Node) []string {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return append(slices.Clone(n.VectorMatching.MatchingLabels), n.VectorMatching.Include...)
		}
	}
	return nil
}

// TestCheck checks that check finds each kind of problem.
func TestCheck(t *testing.T) {
	c := readCatalog(t)
	cases := map[string]struct{ expression, want string }{
		"valid": {expression: `sum by (handler) (rate(seamark_agent_probes_total{result="timeout"}[5m]))`},
		"unknown metric": {
			expression: `seamark_agent_probe_total`, want: `unknown metric "seamark_agent_probe_total"`,
		},
		"histogram without suffix": {
			expression: `rate(seamark_agent_report_size_bytes[5m])`, want: `unknown metric "seamark_agent_report_size_bytes"`,
		},
		"unknown label": {
			expression: `seamark_agent_probes_total{pod="a"}`, want: `seamark_agent_probes_total has no label "pod"`,
		},
		"unknown value": {
			expression: `seamark_agent_probes_total{result="timed_out"}`,
			want:       `result="timed_out" matches none of the values [error failure success timeout] of seamark_agent_probes_total`,
		},
		"grouped by an unknown label": {
			expression: `sum by (marker) (seamark_agent_probes_total)`, want: `none of its metrics has the label "marker"`,
		},
		"joined on an unknown label": {
			expression: `seamark_agent_probes_total and on (node) seamark_agent_planned_probes`, want: `none of its metrics has the label "node"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.check(tc.expression), "; "); got != tc.want {
				t.Errorf("check() = %q, want %q", got, tc.want)
			}
		})
	}
}

// object has the fields of a rendered object that the tests read.
type object struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Selector any
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct{ Ports []struct{ Name string } }
			}
		}
		Ports []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Endpoints           []struct{ Port string }
		PodMetricsEndpoints []struct{ Port string } `yaml:"podMetricsEndpoints"`
		Groups              []any
	}
	Data map[string]string
}

// render renders the chart and returns the objects by kind.
func render(t *testing.T, args ...string) map[string]object {
	t.Helper()
	out := output(t, "helm", append([]string{"template", "seamark", "charts/seamark", "--namespace", "ns"}, args...)...)
	all := map[string]object{}
	decoder := yaml.NewDecoder(bytes.NewReader(out))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("decode the rendered chart: %v", err)
		}
		switch o.Kind {
		case "Service", "ConfigMap":
			all[o.Kind+" "+o.Metadata.Name] = o
		default:
			all[o.Kind] = o
		}
	}
}

func TestChartHasNoMonitoringByDefault(t *testing.T) {
	all := render(t)
	for _, kind := range []string{
		"ServiceMonitor", "PodMonitor", "PrometheusRule", "ConfigMap seamark-dashboard", "Service seamark-manager-metrics",
	} {
		if _, found := all[kind]; found {
			t.Errorf("the chart renders a %s by default", kind)
		}
	}
}

func TestChartWithMonitoring(t *testing.T) {
	all := render(t, "--set", "monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true",
		"--set", "monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true",
		"--set", "monitoring.serviceMonitor.labels.release=prometheus,monitoring.dashboard.labels.team=games")
	service, monitor := all["Service seamark-manager-metrics"], all["ServiceMonitor"]
	manager, agent, pods := all["Deployment"], all["DaemonSet"], all["PodMonitor"]
	selects(t, "ServiceMonitor", monitor.Spec.Selector, service.Metadata.Labels)
	selects(t, "Service", service.Spec.Selector, manager.Spec.Template.Metadata.Labels)
	selects(t, "PodMonitor", pods.Spec.Selector, agent.Spec.Template.Metadata.Labels)
	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 || len(pods.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("want one port each: %+v, %+v, %+v", monitor.Spec.Endpoints, service.Spec.Ports, pods.Spec.PodMetricsEndpoints)
	}
	if monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name || !hasPort(manager, service.Spec.Ports[0].TargetPort) {
		t.Errorf("port %s of the Service %+v is not a port of the manager", monitor.Spec.Endpoints[0].Port, service.Spec.Ports)
	}
	if !hasPort(agent, pods.Spec.PodMetricsEndpoints[0].Port) {
		t.Errorf("port %s is not a port of the agent", pods.Spec.PodMetricsEndpoints[0].Port)
	}
	if monitor.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("labels %v of the ServiceMonitor, want the configured ones included", monitor.Metadata.Labels)
	}

	var file struct{ Groups []any }
	readYAML(t, rulesFile, &file)
	if want, got := encode(t, file.Groups), encode(t, all["PrometheusRule"].Spec.Groups); want != got {
		t.Errorf("the groups of the PrometheusRule differ from the file:\n%s", got)
	}
	dashboard := all["ConfigMap seamark-dashboard"]
	if l := dashboard.Metadata.Labels; l["grafana_dashboard"] != "1" || l["team"] != "games" {
		t.Errorf("labels %v of the dashboard, want grafana_dashboard and the configured ones", l)
	}
	want, err := os.ReadFile(filepath.Join(root, "charts/seamark/files/dashboards/seamark.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := dashboard.Data["seamark.json"]; string(bytes.TrimSpace(want)) != string(bytes.TrimSpace([]byte(got))) {
		t.Error("the dashboard in the ConfigMap differs from the file")
	}
}

// selects checks that a selector, with or without matchLabels, selects the labels.
func selects(t *testing.T, what string, selector any, labels map[string]string) {
	t.Helper()
	required, _ := selector.(map[string]any)
	if inner, found := required["matchLabels"].(map[string]any); found {
		required = inner
	}
	if len(required) == 0 {
		t.Errorf("the selector of the %s is empty", what)
	}
	for key, value := range required {
		if labels[key] != value {
			t.Errorf("the %s selects %s=%v, which %v lack", what, key, value, labels)
		}
	}
}

func hasPort(o object, name string) bool {
	for _, container := range o.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(container.Ports, func(p struct{ Name string }) bool { return p.Name == name }) {
			return true
		}
	}
	return false
}

func encode(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
